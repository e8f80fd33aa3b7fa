#include "report/cli/program.h"

int main(int argc, char** argv) { return xpu::RunReporter(argc, argv); }
