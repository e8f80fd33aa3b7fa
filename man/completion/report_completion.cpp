#include "man/completion/completion.h"
#include "report/help.h"
#include "report/options.h"

int main(int argc, char** argv) {
  return xpu::WriteCompletion(
      argc, argv,
      xpu::DescribeProgram("xpu-report", xpu::ReportCommandLineOptions(), xpu::HelpText()));
}
