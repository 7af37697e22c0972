/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors
 *
 * Exceptions that a library's objects keep, and those that several references
 * keep; the plain ones: t_cut.c. */

#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cut_case.h"

#define RAISES                                                                \
    "code run e.py:10 run; store run local fut - 12;"                         \
    "store run local err - 15; store run local last - 16;"                    \
    "fr frame code=run line=17; t Tensor 4096; fr local:x t;"                 \
    "e ValueError; tb traceback; e __traceback__ tb; tb tb_frame fr;"

#define FUTURE "library Future concurrent.futures; f Future;"

static void
test_exception_in_library_object(void **state)
{
    static const struct cut_case cases[] = {
        {"a future in a local",
         FUTURE RAISES "fr local:fut f; f ._exception e", "exception_in_frame",
         "fr local fut f", "e.py:12",
         "`finally: fut = None` in run: its exception keeps the frame, and "
         "the "
         "frame keeps it"},
        {"a task, which has no names in C",
         FUTURE RAISES "fr local:fut f; f ref e", "exception_in_frame",
         "fr local fut f", "e.py:12", NULL},
        {"the library's own frame has it too, and comes first",
         "code wait /lib/f.py:3 wait library; in frame code=wait;"
         "tb2 traceback;" FUTURE RAISES
         "tb tb_next tb2; tb2 tb_frame in; in f_back fr; in local:self f;"
         "fr local:fut f; f ._exception e",
         "exception_in_frame", "fr local fut f", "e.py:12", NULL},
        {"only the library's frame has it",
         "code wait /lib/f.py:3 wait library; store wait local own - 4;"
         "in frame code=wait; t Tensor 4096; in local:x t; e ValueError;"
         "tb traceback; e __traceback__ tb; tb tb_frame in; in local:own e",
         "exception_in_frame", "in local own e", "/lib/f.py:4", NULL},
        {"look-alike: an object of the user's, which refers back",
         RAISES "f Holder; fr local:fut f; f .error e", "exception_on_self",
         "f .error e", "", NULL},
        {"look-alike: the library's object leads to no exception",
         FUTURE "o Job; t Tensor 4096; o .t t; o .future f; f .owner o",
         "back_link", "f .owner o", "", NULL},
    };

    (void)state;
    CHECK_CUTS(cases);
}

#define FAILS                                                                 \
    "code run e.py:10 Job.run; store run attr task self 11;"                  \
    "store run attr records self 12; store run call append records 13;"       \
    "methods Job run; o Job; fr frame code=run line=14; t Tensor 4096;"       \
    "fr local:x t; fr local:self o; e ValueError; tb traceback;"              \
    "e __traceback__ tb; tb tb_frame fr;"

static void
test_library_object_on_self(void **state)
{
    static const struct cut_case cases[] = {
        {"self.task failed in a method of self",
         FUTURE FAILS "o .task f; f ref e", "exception_on_self", "o .task f",
         "e.py:11",
         "set .task = None when done: the traceback of an exception in it "
         "keeps a frame that keeps the Job"},
        {"records of a log in a list",
         "library Record logging; r Record; l list; i tuple;" FAILS
         "o .records l; l [0] r; r .exc_info i; i [1] e",
         "exception_on_self", "o .records l", "e.py:13",
         "clear .records when done: the traceback of an exception in it keeps "
         "a frame that keeps the Job"},
        {"self.task = sys.exc_info(), a tuple",
         "i tuple;" FAILS "o .task i; i [0] e", "exception_on_self",
         "o .task i", "e.py:11",
         "set .task = None when done: the traceback of an exception in it "
         "keeps a frame that keeps the Job"},
        {"an attribute of what a local has",
         FUTURE "code run e.py:10 run; fr frame code=run; t Tensor 4096;"
                "fr local:x t; b Box; fr local:b b; b .g f; e ValueError;"
                "tb traceback; e __traceback__ tb; tb tb_frame fr;"
                "f ._exception e",
         "exception_on_self", "b .g f", "", NULL},
    };

    (void)state;
    CHECK_CUTS(cases);
}

/* self.error = e, of a group, or without its traceback. */
#define KEPT(made)                                                            \
    "code run e.py:10 Job.run; store run attr error self 11;" made            \
    "methods Job run; o Job; fr frame code=run line=14; t Tensor 4096;"       \
    "fr local:x t; fr local:self o; tb traceback; tb tb_frame fr;"            \
    "o .error e; e __traceback__ tb;"

static void
test_exception_that_with_traceback_does_not_help(void **state)
{
    static const struct cut_case cases[] = {
        {"kept as it is", "e ValueError;" KEPT(""), "exception_on_self",
         "o .error e", "e.py:11",
         "store the exception's with_traceback(None) in .error, or set .error "
         "= None when done: its traceback keeps a frame that keeps the Job"},
        {"a line that takes its traceback off: raised again later",
         "e ValueError;" KEPT("store run call with_traceback e 11;"),
         "exception_on_self", "o .error e", "e.py:11",
         "set .error = None where it is raised again (`finally:`): that gives "
         "it a traceback, which keeps a frame that keeps the Job"},
        {"another line does",
         "e ValueError;" KEPT("store run call with_traceback e 12;"),
         "exception_on_self", "o .error e", "e.py:11",
         "store the exception's with_traceback(None) in .error, or set .error "
         "= None when done: its traceback keeps a frame that keeps the Job"},
        {"a group, whose exceptions have tracebacks",
         "e ExceptionGroup;" KEPT(""), "exception_on_self", "o .error e",
         "e.py:11",
         "keep `str(e)` in .error, or set .error = None when done: the "
         "exceptions in the group have tracebacks of their own, which keep a "
         "frame that keeps the Job"},
    };

    (void)state;
    CHECK_CUTS(cases);
}

static void
test_exception_that_several_keep(void **state)
{
    static const struct cut_case cases[] = {
        {"two locals of a frame", RAISES "fr local:err e; fr local:last e",
         "exception_in_frame", "fr local err e", "e.py:15",
         "`finally: err = last = None` in run: the exception keeps the frame, "
         "and the frame keeps it (last: e.py:16)"},
        {"a local and an attribute",
         RAISES "o Job; fr local:self o; fr local:err e; o .error e",
         "exception_in_frame", "fr local err e", "e.py:15",
         "`finally: err = None` in run and set .error = None when done: the "
         "exception keeps the frame, and the frame keeps it"},
        {"two attributes: self.error = e; self.tb = tb, as __exit__ has them",
         RAISES "o Job; fr local:self o; o .error e; o .tb tb",
         "exception_on_self", "o .error e", "",
         "store the exception's with_traceback(None) in .error, or set .error "
         "= None when done: its traceback keeps a frame that keeps the Job; "
         "Job.tb leads back too"},
        {"locals of two frames, and of one function twice",
         "code deep d.py:40 deep; store deep local l - 41;" RAISES
         "in frame code=deep; in2 frame code=deep; tb2 traceback;"
         "tb3 traceback; l list; tb tb_next tb2; tb2 tb_frame in;"
         "tb2 tb_next tb3; tb3 tb_frame in2; fr local:err l; l [0] e;"
         "in local:l l; in2 local:l l",
         "exception_in_frame", "fr local err l", "e.py:15", NULL},
        {"a traceback in a local beside a frame",
         RAISES "fr local:err fr; fr local:last tb", "frame_in_local",
         "fr local err fr", "e.py:15",
         "`finally: err = last = None` in run: a frame in its own local keeps "
         "every local alive (last: e.py:16)"},
        {"look-alike: the other local has an exception that was not raised",
         RAISES "k KeyError; fr local:err e; fr local:last k",
         "exception_in_frame", "fr local err e", "e.py:15",
         "`finally: err = None` in run: the exception keeps the frame, and "
         "the "
         "frame keeps it"},
    };

    (void)state;
    CHECK_CUTS(cases);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_exception_in_library_object),
        cmocka_unit_test(test_library_object_on_self),
        cmocka_unit_test(test_exception_that_with_traceback_does_not_help),
        cmocka_unit_test(test_exception_that_several_keep),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
