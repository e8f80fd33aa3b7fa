// Code that strange_stacks loads, is called back by, and unloads: as several files that differ in
// the size and the name of one frame.
extern "C" __attribute__((noinline)) void XPU_PLUGIN_FRAME(void (*function)()) {
  volatile char frame[XPU_PLUGIN_FRAME_BYTES];
  frame[0] = 1;
  function();
  frame[1] = frame[0];  // no tail call
}

extern "C" __attribute__((visibility("default"))) void CallBack(void (*function)()) {
  XPU_PLUGIN_FRAME(function);
  __asm__ volatile("");
}
