/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

/* Before a private structure of CPython is trusted, it must give the right
 * answers here: on an instance, generators and frames whose contents are
 * known, on bytecode whose plain form CPython tells, and on a stack that the
 * public calls walk too.  Done once, with collections held off; a failure of
 * any kind means only that the structure is not used.  Cost: about 1 ms, and a
 * listing of each folder of sys.path. */

#include "objects_private.h"

#include <frameobject.h> // PyFrame_GetBack()

#include <string.h>

#include "../../detector/alloc.h"
#include "../tables/phrase.h"

static const char probe_source[] =
    "import functools, opcode, os, sys\n"
    "\n"
    "def tables():\n"
    "    numbers = {n: i for n, i in opcode.opmap.items() if i < 256}\n"
    "    made = getattr(opcode, '_specialized_opmap', None)\n"
    "    if made is None:\n"
    "        free = [i for i, n in enumerate(opcode.opname[:256])\n"
    "                if n.startswith('<')]\n"
    "        made = dict(zip(opcode._specialized_instructions, free))\n"
    "    base = bytearray([255]) * 256\n"
    "    for name, i in numbers.items():\n"
    "        plain = name.removeprefix('INSTRUMENTED_')\n"
    "        if name == 'ENTER_EXECUTOR':\n"
    "            plain = 'JUMP_BACKWARD'\n"
    "        if plain in numbers and plain not in ('LINE', 'INSTRUCTION'):\n"
    "            base[i] = numbers[plain]\n"
    "    for plain, family in opcode._specializations.items():\n"
    "        for name in family:\n"
    "            base[made[name]] = numbers[plain]\n"
    "    counts = opcode._inline_cache_entries\n"
    "    if isinstance(counts, list):\n"
    "        counts = {n: counts[i] for n, i in numbers.items()}\n"
    "    caches = bytearray(256)\n"
    "    for name, count in counts.items():\n"
    "        caches[numbers[name]] = count\n"
    "    return numbers, bytes(base), bytes(caches)\n"
    "\n"
    "def busy(n):\n"
    "    words, table, total = ['a'] * 3, {}, 0\n"
    "    for i in range(n):\n"
    "        total += i * 2\n"
    "        table[i] = words[i % 3] + 'b'\n"
    "        words.append(table[i])\n"
    "        if len(words) > 5 and total >= 1.5:\n"
    "            first, second = words.pop(), (os.path, i)\n"
    "    return lambda: (total, first, second)\n"
    "\n"
    "def lazy(known, other=None):\n"
    "    mine = known\n"
    "    yield mine\n"
    "    return other\n"
    "def holding(known):\n"
    "    inner = lambda: known\n"
    "    alone = [known]\n"
    "    yield inner\n"
    "    return alone\n"
    "def returned(first, known):\n"
    "    last = first\n"
    "    return sys._getframe()\n"
    "def returned_cell(first, known):\n"
    "    inner = lambda: first\n"
    "    return sys._getframe()\n"
    "def started(generator):\n"
    "    next(generator)\n"
    "    return generator\n"
    "\n"
    "def deep(check, n):\n"
    "    return deep(check, n - 1) if n else [check() for _ in 'a'][0]\n"
    "def through(check):\n"
    "    def steps():\n"
    "        yield deep(check, 2)\n"
    "    return list(map(lambda it: next(it), [steps()]))[0]\n"
    "\n"
    "def packages(folder):\n"
    "    with os.scandir(folder) as entries:\n"
    "        names = {one.name for one, _ in zip(entries, range(5000))}\n"
    "    told = {name.partition('-')[0] for name in names\n"
    "            if name.endswith('.dist-info')}\n"
    "    return [os.path.join(folder, name) for name in sorted(told & "
    "names)]\n"
    "def tried(function, *arguments):\n"
    "    try:\n"
    "        return function(*arguments)\n"
    "    except Exception:\n"
    "        return None\n"
    "def own():\n"
    "    script = tried(lambda: os.path.dirname(sys.argv[0]) or '.')\n"
    "    return {tried(os.path.realpath, '.'),\n"
    "            tried(os.path.realpath, script)}\n"
    "def libraries():\n"
    "    found, users = [], own()\n"
    "    listed = tried(list, sys.path) or []\n"
    "    texts = [one for one in listed if type(one) is str]\n"
    "    for folder in list(dict.fromkeys(texts))[:16]:\n"
    "        folder = tried(os.path.abspath, folder)\n"
    "        known = {'site-packages', 'dist-packages'}\n"
    "        python = os.path.join(os.path.dirname(os.__file__), '')\n"
    "        if (folder and known.isdisjoint(folder.split(os.sep))\n"
    "                and not os.path.join(folder, '').startswith(python)\n"
    "                and tried(os.path.realpath, folder) not in users):\n"
    "            found += tried(packages, folder) or []\n"
    "    return found\n"
    "\n"
    "def main(known, check):\n"
    "    for _ in range(40):\n"
    "        busy(30)\n"
    "    spec = type(sys.__spec__)('probe', known)\n"
    "    cumem = sys.modules.get('cumem')\n"
    "    return {\n"
    "        'tables': tables(), 'busy': busy.__code__,\n"
    "        'plain': busy.__code__.co_code, 'instance': spec,\n"
    "        'generator': started(lazy(known)),\n"
    "        'generator2': started(holding(known)),\n"
    "        'frame': returned(0, known),\n"
    "        'frame2': returned_cell(0, known),\n"
    "        'partial': functools.partial,\n"
    "        'folders': (os.path.dirname(os.__file__),\n"
    "                    getattr(cumem, '__path__', [None])[0], "
    "*libraries()),\n"
    "        'stack': through(check),\n"
    "    }\n";

/* ---- the stack: the raw walk against the public calls */

/* Of the probe's own frames only: frame objects made for others would stay
 * with the user's functions. */
enum {
    /* deep three times, steps, the lambda, through, main */
    PROBE_FRAMES = 7 + (PY_VERSION_HEX < 0x030C0000) /* a comprehension */
};

static bool
is_probe_code(const PyCodeObject *code)
{
    return cm_str_is(code->co_filename, "<cumem>");
}

static bool
frames_agree(PyFrameObject *frame, const struct cm_raw_frame *raw)
{
    const PyCodeObject *expected = PyFrame_GetCode(frame);
    const PyCodeObject *code = cm_raw_frame_code(raw);
    Py_DECREF(expected); /* its frame, which runs, holds it */
    return code == expected
           && cm_raw_frame_unit(raw, code) * 2 == PyFrame_GetLasti(frame);
}

static bool
stacks_agree(void)
{
    PyThreadState *thread = PyThreadState_Get();
    PyFrameObject *frame = PyThreadState_GetFrame(thread);
    const struct cm_raw_frame *raw = cm_raw_frame_first(thread);
    int count = 0;
    while (frame != NULL && raw != NULL && frames_agree(frame, raw)) {
        count++;
        raw = cm_raw_frame_next(raw->previous);
        if (raw == NULL || !is_probe_code(cm_raw_frame_code(raw))) {
            break;
        }
        PyFrameObject *back = PyFrame_GetBack(frame);
        Py_DECREF(frame);
        frame = back;
    }
    Py_XDECREF(frame);
    return count == PROBE_FRAMES;
}

/* [new; raises] */
static PyObject *
check_stacks(PyObject *self, PyObject *arguments)
{
    (void)self;
    (void)arguments;
    return PyBool_FromLong(CM_LAYOUT_KNOWN && stacks_agree());
}

static PyMethodDef check_stacks_def = {"check", check_stacks, METH_NOARGS,
                                       NULL};

/* ---- references: the reader's answer for the one object that is known */

struct expected {
    PyObject *referent;
    const char *label;
    enum cm_role role;
    struct cm_texts *texts;
    int right, wrong;
};

static int
is_expected(void *context, PyObject *referent)
{
    return referent == ((struct expected *)context)->referent;
}

static void
see_edge(void *context, PyObject *referent, struct cm_text_id label,
         enum cm_role role)
{
    struct expected *expected = context;
    bool right =
        referent == expected->referent && role == expected->role
        && strcmp(cm_texts_get(expected->texts, label), expected->label) == 0;
    expected->right += right;
    expected->wrong += !right;
}

/* The first showing may be any of the variables that hold it. */
static bool
reads(struct cm_objects *self, PyObject *object, PyObject *referent,
      const char *label, enum cm_role role)
{
    struct expected expected = {.referent = referent,
                                .label = label,
                                .role = role,
                                .texts = self->texts};
    if (object != NULL) {
        cm_objects_edges(self, object, is_expected, see_edge, &expected);
    }
    return expected.right == 1;
}

static void
prove_attributes(struct cm_objects *self, PyObject *results, PyObject *known)
{
    PyObject *instance = PyDict_GetItemString(results, "instance");
    self->proven.attributes = true;
    if (reads(self, instance, known, ".loader", CM_ATTRIBUTE)) {
        self->no_attributes = NULL;
    }
    else {
        self->proven.attributes = false;
        self->no_attributes = "dict only: the layout of instance values was "
                              "not as expected";
    }
}

static void
prove_frames(struct cm_objects *self, PyObject *results, PyObject *known)
{
    PyObject *generator = PyDict_GetItemString(results, "generator");
    PyObject *generator2 = PyDict_GetItemString(results, "generator2");
    PyObject *frame = PyDict_GetItemString(results, "frame");
    PyObject *frame2 = PyDict_GetItemString(results, "frame2");
    self->proven.frames = self->proven.generators = true;
    bool right = reads(self, generator, known, "local mine", CM_LOCAL)
                 && reads(self, generator, known, "local known", CM_LOCAL)
                 && reads(self, frame, known, "local known", CM_LOCAL)
                 && reads(self, frame2, known, "local known", CM_LOCAL)
                 && cm_frame_line(self, frame) != 0;
    struct cm_variables variables;
    right =
        right && cm_variables_of(self, generator2, &variables)
        && variables.count == variables.code->co_nlocalsplus
        && Py_IS_TYPE(cm_stack_ref_object(variables.slots[0]), &PyCell_Type);
    self->proven.frames = self->proven.generators = right;
    self->no_frames = right ? NULL
                            : "unnamed: the layout of frames was not as "
                              "expected";
}

static void
prove_bytecode(struct cm_objects *self, PyObject *results)
{
    PyObject *tables = PyDict_GetItemString(results, "tables");
    PyObject *code = PyDict_GetItemString(results, "busy");
    PyObject *plain = PyDict_GetItemString(results, "plain");
    if (tables == NULL || code == NULL || plain == NULL) {
        return;
    }
    cm_bytecode_init(&self->bytecode, PyTuple_GET_ITEM(tables, 0),
                     PyTuple_GET_ITEM(tables, 1), PyTuple_GET_ITEM(tables, 2));
    self->bytecode.known =
        cm_bytecode_agrees(&self->bytecode, (const PyCodeObject *)code, plain);
}

/* ---- what else is learnt */

static char *
folder_of(PyObject *folders, Py_ssize_t index)
{
    struct cm_phrase path;
    path.length = 0;
    PyObject *folder = PyTuple_GET_ITEM(folders, index);
    if (!PyUnicode_Check(folder) || PyUnicode_GET_LENGTH(folder) == 0) {
        return NULL;
    }
    cm_phrase_add_str(&path, folder, CM_PHRASE_BYTES / 8);
    cm_phrase_add(&path, "/");
    path.bytes[path.length] = '\0';
    return cm_strdup(path.bytes);
}

static void
learn(struct cm_objects *self, PyObject *results, PyObject *known)
{
    PyObject *partial = PyDict_GetItemString(results, "partial");
    PyObject *folders = PyDict_GetItemString(results, "folders");
    if (partial != NULL && PyType_Check(partial)) {
        self->partial = (PyTypeObject *)Py_NewRef(partial);
    }
    for (Py_ssize_t i = 0; folders != NULL && i < CM_LIBRARY_FOLDERS
                           && i < PyTuple_GET_SIZE(folders);
         i++) {
        self->library_folders[i] = folder_of(folders, i);
        self->library_count = (size_t)i + 1;
    }
    prove_bytecode(self, results);
    if (!CM_LAYOUT_KNOWN) {
        return;
    }
    prove_attributes(self, results, known);
    prove_frames(self, results, known);
    self->proven.stack = PyDict_GetItemString(results, "stack") == Py_True;
    self->no_stack = self->proven.stack
                         ? NULL
                         : "public API: the layout of the stack was not as "
                           "expected";
}

/* [new; raises] main(known, check) of the source above. */
static PyObject *
run_probe(PyObject *names, PyObject *known)
{
    PyObject *code = NULL, *done = NULL, *check = NULL, *results = NULL;
    code = Py_CompileString(probe_source, "<cumem>", Py_file_input);
    if (code == NULL
        || PyDict_SetItemString(names, "__builtins__", PyEval_GetBuiltins())
               < 0) {
        goto done;
    }
    done = PyEval_EvalCode(code, names, names);
    check = PyCFunction_New(&check_stacks_def, NULL);
    if (done != NULL && check != NULL) {
        results = PyObject_CallFunctionObjArgs(
            PyDict_GetItemString(names, "main"), known, check, NULL);
    }
done:
    Py_XDECREF(check);
    Py_XDECREF(done);
    Py_XDECREF(code);
    return results;
}

static void
not_proven(struct cm_objects *self)
{
#if CM_LAYOUT_KNOWN
    self->no_attributes = "dict only: the proof could not be run";
    self->no_frames = "unnamed: the proof could not be run";
    self->no_stack = "public API: the proof could not be run";
#elif defined(Py_GIL_DISABLED)
    self->no_attributes = "dict only: free-threaded build";
    self->no_frames = "unnamed: free-threaded build";
    self->no_stack = "public API: free-threaded build";
#else
    self->no_attributes = "dict only: this version of Python is not known";
    self->no_frames = "unnamed: this version of Python is not known";
    self->no_stack = "public API: this version of Python is not known";
#endif
}

void
cm_objects_prove(struct cm_objects *self)
{
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    int collecting = PyGC_Disable();
    not_proven(self);
    self->modules = Py_XNewRef(PyImport_GetModuleDict());
    PyObject *names = PyDict_New();
    PyObject *known = PyList_New(0);
    if (names != NULL && known != NULL) {
        PyObject *results = run_probe(names, known);
        if (results != NULL && PyDict_CheckExact(results)) {
            learn(self, results, known);
        }
        Py_XDECREF(results);
        PyDict_Clear(names); /* its functions hold it */
    }
    Py_XDECREF(known);
    Py_XDECREF(names);
    if (collecting) {
        PyGC_Enable();
    }
    PyErr_Restore(type, value, traceback);
}
