/*
 * The library is linked without the compiler's start files, so that it has no initialisers at all.
 * This is the one thing of theirs that it needs: the handle with which libc ties our atexit and
 * fork handlers to this library.
 */
__attribute__((visibility("hidden"))) void *__dso_handle = &__dso_handle;
