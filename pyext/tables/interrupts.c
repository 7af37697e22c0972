/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

/* A handler's frame is told by what the interpreter calls it with: a signal's
 * number and the frame that it interrupts, side by side, which nobody else
 * passes on.  One that has let go of its arguments is told by its code, as
 * long as it is still installed.
 *
 * The main thread raises what is kept in a pending call; in another thread
 * only PyThreadState_SetAsyncExc() interrupts, which takes a class, and so do
 * we.  The frames of ours that it went through are cut off and emptied, since
 * they would keep alive whatever they had. */

#define _GNU_SOURCE
#include "interrupts.h"

#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static PyObject *kept;           /* owned */
static _Thread_local int within; /* calls of our Python */

/* --- whose it is ---------------------------------------------------------- */

static bool
is_signal(PyObject *object)
{
    int overflow;
    long number = PyLong_CheckExact(object)
                      ? PyLong_AsLongAndOverflow(object, &overflow)
                      : 0;
    return number > 0 && number < NSIG;
}

/* `last` is the argument before. */
static bool
completes(PyObject *argument, PyObject **last)
{
    bool found = *last != NULL && is_signal(*last) && PyFrame_Check(argument);
    *last = argument;
    return found;
}

/* Borrowed, NULL: the variable is gone.  `locals` is a dict, or from CPython
 * 3.13 on the frame's own mapping. */
static PyObject *
variable(PyObject *locals, PyObject *names, Py_ssize_t at)
{
    PyObject *value = PyObject_GetItem(locals, PyTuple_GET_ITEM(names, at));
    PyErr_Clear();
    Py_XDECREF(value); /* the frame has it */
    return value;
}

static bool
has_arguments_of_handler(PyCodeObject *code, PyObject *locals, PyObject *names)
{
    PyObject *last = NULL;
    bool found = false;
    for (Py_ssize_t i = 0; !found && i < code->co_argcount; i++) {
        PyObject *value = variable(locals, names, i);
        found = value != NULL && completes(value, &last);
        last = value;
    }
    if (!found && (code->co_flags & CO_VARARGS) != 0) {
        PyObject *rest = variable(locals, names,
                                  code->co_argcount + code->co_kwonlyargcount);
        for (Py_ssize_t i = 0; !found && rest != NULL && PyTuple_Check(rest)
                               && i < PyTuple_GET_SIZE(rest);
             i++) {
            found = completes(PyTuple_GET_ITEM(rest, i), &last);
        }
    }
    return found;
}

static bool
is_called_as_handler(PyFrameObject *frame, PyCodeObject *code)
{
    if (code->co_argcount == 0 && (code->co_flags & CO_VARARGS) == 0) {
        return false;
    }
    PyObject *locals = PyFrame_GetLocals(frame);
    PyObject *names = PyCode_GetVarnames(code);
    bool found = locals != NULL && names != NULL
                 && has_arguments_of_handler(code, locals, names);
    Py_XDECREF(names);
    Py_XDECREF(locals);
    PyErr_Clear();
    return found;
}

static bool
runs(PyObject *callable, PyCodeObject *code)
{
    PyObject *function =
        PyMethod_Check(callable) ? PyMethod_GET_FUNCTION(callable) : callable;
    return PyFunction_Check(function)
           && PyFunction_GET_CODE(function) == (PyObject *)code;
}

static bool
is_installed(PyCodeObject *code)
{
    PyObject *name = PyUnicode_FromString("_signal");
    PyObject *module = name != NULL ? PyImport_GetModule(name) : NULL;
    bool found = false;
    for (int number = 1; module != NULL && !found && number < NSIG; number++) {
        PyObject *handler =
            PyObject_CallMethod(module, "getsignal", "i", number);
        found = handler != NULL && runs(handler, code);
        PyErr_Clear(); /* some numbers have none */
        Py_XDECREF(handler);
    }
    PyErr_Clear();
    Py_XDECREF(module);
    Py_XDECREF(name);
    return found;
}

static bool
is_ours(PyFrameObject *frame)
{
    static const char package[] = "cumem.";
    PyObject *names = PyFrame_GetGlobals(frame);
    PyObject *name =
        names != NULL ? PyDict_GetItemString(names, "__name__") : NULL;
    const char *text = name != NULL && PyUnicode_CheckExact(name)
                           ? PyUnicode_AsUTF8(name)
                           : NULL;
    bool ours = text != NULL && strncmp(text, package, strlen(package)) == 0;
    PyErr_Clear();
    Py_XDECREF(names);
    return ours;
}

/* The locals of ours are not asked for: CPython 3.11 and 3.12 keep the answer
 * with the frame, and it is not emptied with it. */
static bool
is_handler(PyFrameObject *frame)
{
    if (is_ours(frame)) {
        return false;
    }
    PyCodeObject *code = PyFrame_GetCode(frame);
    bool found = is_called_as_handler(frame, code) || is_installed(code);
    Py_DECREF(code);
    return found;
}

/* The first frame is where the error surfaces: ours. */
static bool
went_through_handler(PyObject *error)
{
    PyObject *traceback = PyException_GetTraceback(error);
    bool found = false;
    PyTracebackObject *at = (PyTracebackObject *)traceback;
    while (at != NULL && !found) {
        found = at->tb_next != NULL && is_handler(at->tb_next->tb_frame);
        at = at->tb_next;
    }
    Py_XDECREF(traceback);
    return found;
}

bool
cm_interrupts_raised(PyObject *error, bool by_observer)
{
    bool other = !PyErr_GivenExceptionMatches(error, PyExc_Exception);
    return (other && !by_observer)
           || PyErr_GivenExceptionMatches(error, PyExc_KeyboardInterrupt)
           || went_through_handler(error);
}

/* --- what becomes of it ----------------------------------------------------- */

static void
empty(PyFrameObject *frame)
{
    PyObject *done = PyObject_CallMethod((PyObject *)frame, "clear", NULL);
    PyErr_Clear();
    Py_XDECREF(done);
}

/* What the program would see had it been interrupted itself. */
static void
leave_us_out(PyObject *error)
{
    PyObject *traceback = PyException_GetTraceback(error);
    PyObject *rest = traceback; /* borrowed */
    for (PyTracebackObject *at = (PyTracebackObject *)traceback; at != NULL;
         at = at->tb_next) {
        if (is_ours(at->tb_frame)) {
            rest = (PyObject *)at->tb_next;
        }
    }
    PyException_SetTraceback(error, rest != NULL ? rest : Py_None);
    for (PyTracebackObject *at = (PyTracebackObject *)traceback; at != NULL;
         at = at->tb_next) {
        if (is_ours(at->tb_frame)) {
            empty(at->tb_frame);
        }
    }
    Py_XDECREF(traceback);
}

/* [new; never] The error that was set, with its traceback; NULL: none was. */
static PyObject *
take_error(void)
{
#if PY_VERSION_HEX >= 0x030C0000
    return PyErr_GetRaisedException();
#else
    PyObject *type, *error, *traceback;
    PyErr_Fetch(&type, &error, &traceback);
    PyErr_NormalizeException(&type, &error, &traceback);
    if (error != NULL && traceback != NULL) {
        PyException_SetTraceback(error, traceback);
    }
    Py_XDECREF(type);
    Py_XDECREF(traceback);
    return error;
#endif
}

/* Takes `error`. */
static void
set_error(PyObject *error)
{
#if PY_VERSION_HEX >= 0x030C0000
    PyErr_SetRaisedException(error);
#else
    PyErr_Restore(Py_NewRef((PyObject *)Py_TYPE(error)), error,
                  PyException_GetTraceback(error));
#endif
}

static int
raise_kept(void *unused)
{
    (void)unused;
    if (kept == NULL || within != 0
        || PyInterpreterState_Get() != PyInterpreterState_Main()) {
        return 0; /* at the end of the call that is under way */
    }
    PyObject *error = kept;
    kept = NULL;
    set_error(error);
    return -1;
}

bool
cm_interrupts_on_main_thread(void)
{
    return syscall(SYS_gettid) == getpid();
}

bool
cm_interrupts_keep(bool by_observer)
{
    PyObject *error = take_error();
    if (error == NULL || !cm_interrupts_raised(error, by_observer)) {
        if (error != NULL) {
            set_error(error);
        }
        return false;
    }
    if (cm_interrupts_on_main_thread()) {
        leave_us_out(error);
        Py_XSETREF(kept, error);
    }
    else {
        PyThreadState_SetAsyncExc(PyThread_get_thread_ident(),
                                  (PyObject *)Py_TYPE(error));
        Py_DECREF(error);
    }
    return true;
}

void
cm_interrupts_enter(void)
{
    within++;
}

/* With a full queue it waits for our next call. */
void
cm_interrupts_leave(void)
{
    if (--within == 0 && kept != NULL) {
        (void)Py_AddPendingCall(raise_kept, NULL);
    }
}
