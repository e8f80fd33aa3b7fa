#include "man/completion/completion.h"
#include "report/cli/options.h"

int main(int argc, char** argv) {
  return xpu::WriteCompletion(argc, argv,
                              xpu::DescribeProgram("xpu-report", xpu::ReportCommandLineOptions(),
                                                   xpu::HelpOfGroups(xpu::HelpGroups())));
}
