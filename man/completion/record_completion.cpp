#include "man/completion/completion.h"
#include "record/cli/command_line.h"
#include "record/cli/help_groups.h"

int main(int argc, char** argv) {
  auto program = xpu::DescribeProgram("xpu-record", xpu::RecordCommandLineOptions(),
                                      xpu::HelpOfGroups(xpu::kHelpGroups));
  if (program.ok()) program->runs_program = true;
  return xpu::WriteCompletion(argc, argv, program);
}
