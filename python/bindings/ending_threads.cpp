// The end of the interpreter, as seen by daemon threads. Python ends a thread that wants the GIL while the interpreter
// ends with pthread_exit, which unwinds its stack. In C++ frames that runs destructors without the GIL, and aborts the
// process at the first function that must not throw. So every function of Python that this extension calls, and that
// may wait for the GIL, is called through one here (the linker's --wrap, CMakeLists.txt): it catches the unwinding and
// stops the thread for ever, as Python 3.14 does by itself. The process ends without it.
#include "python/bindings/ending_threads.h"

#include <Python.h>

#if defined(__linux__)
#include <cxxabi.h>
#include <pthread.h>
#include <unistd.h>

#include <atomic>

namespace {

std::atomic<bool> ending{false};
pthread_t ending_thread{};  // set before `ending`

[[noreturn]] void stop_this_thread() {
  for (;;) pause();
}

// True when there is no interpreter left that another thread than the one that ends it could enter.
bool too_late() {
  return !Py_IsInitialized() && ending.load(std::memory_order_acquire) && !pthread_equal(pthread_self(), ending_thread);
}

}  // namespace

void rlx::python::note_ending_thread() {
  ending_thread = pthread_self();
  ending.store(true, std::memory_order_release);
}

// Each line defines __wrap_NAME, which the other files call as NAME. CMakeLists.txt reads the names of these lines.
#define RLX_GUARDED(result, name, parameters, arguments) \
  extern "C" result __real_##name parameters;            \
  extern "C" result __wrap_##name parameters;            \
  extern "C" result __wrap_##name parameters {           \
    try {                                                \
      return __real_##name arguments;                    \
    } catch (abi::__forced_unwind&) {                    \
      stop_this_thread();                                \
    }                                                    \
  }

// -- the GIL --
RLX_GUARDED(int, PyErr_CheckSignals, (void), ())
// -- calls, attributes, items --
RLX_GUARDED(PyObject*, PyObject_Call, (PyObject * f, PyObject* a, PyObject* k), (f, a, k))
RLX_GUARDED(PyObject*, PyObject_Vectorcall, (PyObject * f, PyObject* const* a, size_t n, PyObject* k), (f, a, n, k))
RLX_GUARDED(PyObject*, PyObject_VectorcallMethod, (PyObject * f, PyObject* const* a, size_t n, PyObject* k),
            (f, a, n, k))
RLX_GUARDED(PyObject*, PyVectorcall_Call, (PyObject * f, PyObject* a, PyObject* k), (f, a, k))
RLX_GUARDED(PyObject*, PyEval_EvalCode, (PyObject * c, PyObject* g, PyObject* l), (c, g, l))
RLX_GUARDED(PyObject*, PyImport_ImportModule, (const char* name), (name))
RLX_GUARDED(PyObject*, PyObject_GetAttr, (PyObject * o, PyObject* name), (o, name))
RLX_GUARDED(PyObject*, PyObject_GetAttrString, (PyObject * o, const char* name), (o, name))
RLX_GUARDED(PyObject*, PyObject_GenericGetAttr, (PyObject * o, PyObject* name), (o, name))
RLX_GUARDED(int, PyObject_HasAttr, (PyObject * o, PyObject* name), (o, name))
RLX_GUARDED(int, PyObject_SetAttr, (PyObject * o, PyObject* name, PyObject* v), (o, name, v))
RLX_GUARDED(int, PyObject_SetAttrString, (PyObject * o, const char* name, PyObject* v), (o, name, v))
RLX_GUARDED(PyObject*, PyObject_GetItem, (PyObject * o, PyObject* key), (o, key))
RLX_GUARDED(int, PyObject_SetItem, (PyObject * o, PyObject* key, PyObject* v), (o, key, v))
RLX_GUARDED(int, PyObject_DelItem, (PyObject * o, PyObject* key), (o, key))
RLX_GUARDED(PyObject*, PyObject_GetIter, (PyObject * o), (o))
RLX_GUARDED(PyObject*, PyIter_Next, (PyObject * o), (o))
RLX_GUARDED(Py_hash_t, PyObject_Hash, (PyObject * o), (o))
RLX_GUARDED(int, PyObject_IsTrue, (PyObject * o), (o))
RLX_GUARDED(PyObject*, PyObject_Repr, (PyObject * o), (o))
RLX_GUARDED(PyObject*, PyObject_Str, (PyObject * o), (o))
RLX_GUARDED(int, PyObject_RichCompareBool, (PyObject * a, PyObject* b, int op), (a, b, op))
RLX_GUARDED(Py_ssize_t, PyObject_Size, (PyObject * o), (o))
RLX_GUARDED(int, PyObject_GetBuffer, (PyObject * o, Py_buffer* b, int flags), (o, b, flags))
RLX_GUARDED(void, PyBuffer_Release, (Py_buffer * b), (b))
RLX_GUARDED(PyObject*, PyMemoryView_FromObject, (PyObject * o), (o))
RLX_GUARDED(PyObject*, PyNumber_Float, (PyObject * o), (o))
RLX_GUARDED(PyObject*, PyNumber_Index, (PyObject * o), (o))
RLX_GUARDED(PyObject*, PyNumber_Long, (PyObject * o), (o))
RLX_GUARDED(double, PyFloat_AsDouble, (PyObject * o), (o))
RLX_GUARDED(int, PySequence_Contains, (PyObject * o, PyObject* v), (o, v))
RLX_GUARDED(PyObject*, PySequence_GetItem, (PyObject * o, Py_ssize_t i), (o, i))
RLX_GUARDED(Py_ssize_t, PySequence_Size, (PyObject * o), (o))
RLX_GUARDED(PyObject*, PySequence_Tuple, (PyObject * o), (o))
RLX_GUARDED(PyObject*, PyMapping_Items, (PyObject * o), (o))
RLX_GUARDED(PyObject*, PyDict_GetItemWithError, (PyObject * d, PyObject* key), (d, key))
RLX_GUARDED(int, PyDict_SetItem, (PyObject * d, PyObject* key, PyObject* v), (d, key, v))
RLX_GUARDED(int, PyDict_Contains, (PyObject * d, PyObject* key), (d, key))
RLX_GUARDED(int, PyDict_DelItem, (PyObject * d, PyObject* key), (d, key))
RLX_GUARDED(int, PyDict_Update, (PyObject * d, PyObject* from), (d, from))
RLX_GUARDED(void, PyDict_Clear, (PyObject * d), (d))
RLX_GUARDED(int, PyList_Sort, (PyObject * l), (l))
RLX_GUARDED(PyObject*, PyOS_FSPath, (PyObject * path), (path))
RLX_GUARDED(int, PyErr_WarnEx, (PyObject * category, const char* text, Py_ssize_t level), (category, text, level))
RLX_GUARDED(void, PyErr_WriteUnraisable, (PyObject * o), (o))
// -- the garbage collector and what it finalizes --
RLX_GUARDED(void, _Py_Dealloc, (PyObject * o), (o))
RLX_GUARDED(void, Py_DecRef, (PyObject * o), (o))
RLX_GUARDED(PyObject*, PyTuple_New, (Py_ssize_t n), (n))
RLX_GUARDED(PyObject*, PyList_New, (Py_ssize_t n), (n))
RLX_GUARDED(PyObject*, PyDict_New, (void), ())
RLX_GUARDED(PyObject*, PyType_GenericAlloc, (PyTypeObject * t, Py_ssize_t n), (t, n))

// These two also wait when the interpreter has ended, and there is no thread state left to look at. The thread that
// ends it goes on: it destroys objects.
#undef RLX_GUARDED
#define RLX_GUARDED(result, name, parameters, arguments) \
  extern "C" result __real_##name parameters;            \
  extern "C" result __wrap_##name parameters;            \
  extern "C" result __wrap_##name parameters {           \
    if (too_late()) stop_this_thread();                  \
    try {                                                \
      return __real_##name arguments;                    \
    } catch (abi::__forced_unwind&) {                    \
      stop_this_thread();                                \
    }                                                    \
  }
RLX_GUARDED(void, PyEval_RestoreThread, (PyThreadState * s), (s))
RLX_GUARDED(PyGILState_STATE, PyGILState_Ensure, (void), ())

// Threads may run compiled programs until the process is gone, so the statics of this extension are never destroyed.
// Functions given to atexit (`object` is null) are kept.
extern "C" int __real___cxa_atexit(void (*f)(void*), void* object, void* library);
extern "C" int __wrap___cxa_atexit(void (*f)(void*), void* object, void* library);
extern "C" int __wrap___cxa_atexit(void (*f)(void*), void* object, void* library) {
  return object ? 0 : __real___cxa_atexit(f, object, library);
}
#else
void rlx::python::note_ending_thread() {}
#endif
