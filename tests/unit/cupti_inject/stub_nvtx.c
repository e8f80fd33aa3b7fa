int nvtxRangePushA(const char *text) { return text == 0; }
int nvtxRangePop(void) { return 0; }
