// Code that strange_stacks loads, is called back by, and unloads.
extern "C" __attribute__((visibility("default"))) void CallBack(void (*function)()) {
  function();
  __asm__ volatile("");  // no tail call
}
