/*
 * Thread states of CPython as extensions change them; python_states.py calls this. It is built
 * without Python's headers: what is declared here is the same in all versions.
 */
#include <pthread.h>
#include <stddef.h>
#include <time.h>

typedef struct _ts PyThreadState;
extern PyThreadState* Py_NewInterpreter(void);
extern PyThreadState* PyThreadState_Get(void);
extern PyThreadState* PyThreadState_Swap(PyThreadState*);
extern int PyRun_SimpleStringFlags(const char*, void*);

static double cpu_seconds(void) {
  struct timespec time;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

struct calls {
  void (*callback)(void);
  double seconds;
};

/* Each call takes a new thread state, since ctypes' callbacks release theirs. */
static void* call_python(void* argument) {
  const struct calls* calls = argument;
  const double end = cpu_seconds() + calls->seconds;
  while (cpu_seconds() < end) calls->callback();
  return NULL;
}

/* Called without the lock. */
void call_from_thread(void (*callback)(void), double seconds) {
  struct calls calls = {callback, seconds};
  pthread_t thread;
  if (pthread_create(&thread, NULL, call_python, &calls) == 0) pthread_join(thread, NULL);
}

void* this_state(void) { return PyThreadState_Get(); }

void* new_interpreter(void) {
  PyThreadState* own = PyThreadState_Get();
  PyThreadState* state = Py_NewInterpreter();
  PyThreadState_Swap(own);
  return state;
}

/* Runs code in another interpreter, on this thread. */
int run_in(void* state, const char* code) {
  PyThreadState* own = PyThreadState_Swap(state);
  const int result = PyRun_SimpleStringFlags(code, NULL);
  PyThreadState_Swap(own);
  return result;
}
