#include "record/cli/run.h"

int main(int argc, char** argv) { return xpu::RunRecorder(argc, argv); }
