#include "man/completion/completion.h"
#include "record/help.h"
#include "record/options.h"

int main(int argc, char** argv) {
  auto program =
      xpu::DescribeProgram("xpu-record", xpu::RecordCommandLineOptions(), xpu::kHelpText);
  if (program.ok()) program->runs_program = true;
  return xpu::WriteCompletion(argc, argv, program);
}
