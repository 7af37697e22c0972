/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_TEST_HOLDING_CASES_H
#define CM_TEST_HOLDING_CASES_H

/* Ways that fit the rules of graph/holding.c, and such as look like them.  The
 * steps of a way are "species|edge|what|items", see t_holding.c. */

#include <stddef.h>
#include <stdint.h>

#include "../graph/holding.h"

static const struct {
    const char *steps, *category, *kept;
    size_t at;
    uint64_t depth;
    const char *rule, *advice;
} cases[] = {
    /* gradient not cleared */
    {"M||module a;O|.net|Net;T|.grad|Tensor [4]", "gradient", NULL, 2, 0,
     "gradient not cleared", "zero_grad(set_to_none=True)"},
    {"M||module a;L|.grads|list of 9|9;T|[3]|Tensor [4]", "other", NULL, 1, 0,
     "container grows", "clear grads"},
    /* dead cycle: there is nothing to drop or to clear */
    {"O||" CM_HOLDING_DEAD ";O||Trainer;L|.acts|list of 4|4;T|[2]|Tensor [4]",
     NULL, NULL, 2, 0, "dead cycle", "cut the cycle"},
    {"O||" CM_HOLDING_DEAD ";O||Net;T|.grad|Tensor [4]", "gradient", NULL, 1,
     0, "gradient not cleared", "zero_grad"},
    /* kept exception */
    {"F||a.py:3 main;L|local errors|list of 5|5;X|[2]|ValueError;"
     "B|__traceback__|traceback;F|tb_frame|frame;T|local x|Tensor [4]",
     NULL, NULL, 1, 0, "kept exception", "with_traceback(None) in errors"},
    /* chained: named by who keeps the last one */
    {"F||a.py:3 main;O|local run|Runner;X|.last|ValueError;"
     "X|__cause__|ValueError;B|__traceback__|traceback;F|tb_frame|frame;"
     "T|local big|Tensor [4]",
     NULL, NULL, 6, 0, "kept exception", "with_traceback(None) in last"},
    {"M||module sys;X|.last_value|OSError;B|__traceback__|traceback;"
     "F|tb_frame|frame;T|local x|Tensor [4]",
     NULL, NULL, 1, 0, "kept exception", "in last_value"},
    {"F||a.py:3 main;L|local errors|list of 5|5;X|[2]|ValueError;"
     "t|.args|tuple of 1|1;T|[0]|Tensor [4]",
     NULL, NULL, 1, 0, "container grows", "clear errors"},
    /* hooks pile up */
    {"F||a.py:3 main;O|local net|Net;D|._forward_hooks|OrderedDict of 7|7;"
     "f|[3]|function hook;T|cell x|Tensor [4]",
     NULL, NULL, 2, 0, "hooks pile up", "handle.remove()"},
    {"F||a.py:3 main;T|local w|Tensor [4];D|._backward_hooks|dict of 3|3;"
     "f|[0]|function <lambda>;T|cell g|Tensor [4]",
     NULL, NULL, 2, 0, "hooks pile up", "handle.remove()"},
    {"F||a.py:3 main;O|local net|Net;D|._forward_hooks|OrderedDict of 1|1;"
     "f|[3]|function hook;L|cell seen|list of 9|9;T|[2]|Tensor [4]",
     NULL, NULL, 4, 0, "container grows", "clear seen"},
    /* lru_cache */
    {"M||module a;C|.Net|class Net;O|.embed|lru_cache of Net.embed;"
     "t|cached arguments|tuple of 2|2;O|[0]|Net;T|.w|Tensor [4]",
     NULL, NULL, 2, 0, "lru_cache on a method", "Net.embed"},
    {"M||module a;O|.table|lru_cache of table;T|cached result|Tensor [4]",
     NULL, NULL, 1, 0, "lru_cache", "table.cache_clear()"},
    {"M||module a;O|.inner|lru_cache of outer.<locals>.inner;"
     "T|cached result|Tensor [4]",
     NULL, NULL, 1, 0, "lru_cache", "maxsize"},
    {"M||module a;O|.lru_cache|Cache;D|.entries|dict of 8|8;T|[2]|Tensor [4]",
     NULL, NULL, 2, 0, "container grows", "clear entries"},
    /* weakref.finalize */
    {"M||module weakref;C|.finalize|class finalize;D|._registry|dict of 9|9;"
     "O|[<weakref.finalize>]|weakref.finalize._Info;"
     "t|.args|tuple of 1|1;T|[0]|Tensor [4]",
     NULL, "x", 2, 0, "weakref.finalize", "x is an argument of "},
    {"M||module weakref;C|.finalize|class finalize;D|._registry|dict of 9|9;"
     "O|[<weakref.finalize>]|weakref.finalize._Info;"
     "O|.func|method close of Batch;O|__self__|Batch;T|.x|Tensor [4]",
     NULL, NULL, 2, 0, "weakref.finalize", "keeps its function"},
    {"M||module weakref;C|.finalize|class finalize;D|._registry|dict of 1|1;"
     "O|[<weakref.finalize>]|weakref.finalize._Info;"
     "t|.args|tuple of 1|1;L|[0]|list of 9|9;T|[3]|Tensor [4]",
     NULL, NULL, 5, 0, "container grows", "clear "},
    {"M||module a;C|.finalize|class finalize;D|._registry|dict of 9|9;"
     "O|[3]|a.finalize._Info;t|.args|tuple of 1|1;T|[0]|Tensor [4]",
     NULL, NULL, 2, 0, "global cache", "give _registry a bound"},
    /* checkpoint kept */
    {"F||a.py:3 main;D|local ckpt|dict of 2|2;D|['model']|dict of 4|4;"
     "T|['layer.0.weight']|Tensor [4]",
     NULL, NULL, 2, 0, "checkpoint kept", "`del ckpt`"},
    {"M||module a;D|.weights|OrderedDict of 4|4;T|['fc.bias']|Tensor [4]",
     NULL, NULL, 1, 0, "checkpoint kept", "`del weights`"},
    {"F||a.py:3 main;O|local net|Net;D|._parameters|dict of 4|4;"
     "T|['weight']|Tensor [4]",
     NULL, NULL, 2, 0, "container grows", "clear _parameters"},
    {"F||a.py:3 main;D|local batch|dict of 2|2;T|['class_weight']|Tensor [4]",
     NULL, NULL, 1, 0, "container grows", "clear batch"},
    /* outside the frameworks: of it nothing in Python is known */
    {"M||module a", "outside the frameworks", NULL, 0, 0,
     "outside the frameworks", "CUMEM_DRIVER=1"},
    {"M||module a", "other", NULL, 0, 0, "C++ only", "C extension"},
    /* second copy of the weights */
    {"F||a.py:3 main;O|local old|Sequential", CM_HOLDING_COPY, NULL, 1, 0,
     "second copy of the weights", "`del old` when"},
    {"M||module a;O|.old|Sequential", CM_HOLDING_COPY, NULL, 1, 0,
     "second copy of the weights", "`del old` when"},
    {"M||module a;O|.trainer|Trainer;O|.old|Sequential", CM_HOLDING_COPY, NULL,
     2, 0, "second copy of the weights", "set trainer.old = None"},
    {"F||a.py:3 fit;O|local self|Trainer;D|.ckpt|dict of 2|2;"
     "D|['model']|dict of 9|9",
     CM_HOLDING_COPY, NULL, 3, 0, "second copy of the weights",
     "set self.ckpt = None"},
    {"F||a.py:3 main;L|local all|list of 2|2;O|[0]|Net;O|.old|Linear",
     CM_HOLDING_COPY, NULL, 3, 0, "second copy of the weights",
     "set .old = None"},
    {"F||a.py:3 main;D|local file|dict of 2|2;D|['model']|dict of 9|9",
     CM_HOLDING_COPY, NULL, 2, 0, "second copy of the weights",
     "`del file` when"},
    {"M||module a;O|.old|Sequential", "parameter", NULL, 1, 0, "kept", "old"},
    /* tensor gets longer */
    {"F||a.py:3 main;O|local c|Contrast;T|.bank|Tensor [9, 256] float32",
     CM_HOLDING_LARGER, NULL, 2, 0, "tensor gets longer",
     "give bank a bound (keep the last N rows: `bank[-N:]`, or `[:N]` where "
     "new ones come first), or set it anew where an epoch or a sequence ends"},
    {"M||module a;T|.seen|Tensor [9, 256] float32", CM_HOLDING_LARGER, NULL, 1,
     40, "tensor gets longer",
     "`seen[-N:]`, or `[:N]` where new ones come first), or set it anew where "
     "an epoch or a sequence ends, and detach() what is added"},
    {"F||a.py:3 main;O|local c|Contrast;T|.bank|Tensor [9, 256] float32",
     "other", NULL, 2, 0, "kept", "set bank = None"},
    {"F||a.py:3 main;T|local total|Tensor []", CM_HOLDING_LARGER, "loss", 1,
     40, "sum keeps its graph", "`total += loss.item()`"},
    {"F||a.py:3 main;L|local log|list of 9|9;T|[8]|Tensor [9, 256]",
     CM_HOLDING_LARGER, NULL, 1, 0, "container grows", "clear log"},
    /* graphs */
    {"F||a.py:3 main;T|local total|Tensor []", NULL, "loss", 1, 40,
     "sum keeps its graph", "`total += loss.item()`"},
    {"M||module a;O|.meter|Meter;T|.sum|Tensor []", NULL, "sum", 2, 9,
     "sum keeps its graph", "`sum += loss.item()`"},
    {"F||a.py:3 main;T|local total|Tensor []", NULL, NULL, 1, 0, "kept",
     "set total = None"},
    {"M||module a;L|.losses|list of 9|9;T|[3]|Tensor [] float32", NULL, "l", 1,
     7, "graph of a kept scalar", "append `l.item()` instead"},
    {"F||a.py:3 main;D|local log|dict of 9|9;T|[3]|Tensor [] float32", NULL,
     NULL, 1, 7, "graph of a kept scalar", "keep `loss.item()` instead"},
    {"M||module a;L|.losses|list of 9|9;T|[3]|Tensor [] float32", NULL, NULL,
     1, 0, "kept scalars", "append `x.item()` instead"},
    {"M||module a;L|.outs|list of 9|9;D|[3]|dict of 2|2;"
     "T|['loss']|Tensor [] float32",
     NULL, NULL, 1, 0, "kept scalars",
     "keep `loss.item()` in what is appended to outs"},
    {"M||module a;L|.outs|list of 9|9;t|[3]|tuple of 2|2;"
     "T|[0]|Tensor [] float32",
     NULL, NULL, 1, 7, "graph of a kept scalar",
     "keep numbers (`.item()`), not tensors, in what is appended to outs"},
    {"M||module a", "gradient", NULL, 0, 0, "gradient not cleared", "zero_"},
    {"M||module a", CM_HOLDING_GRADIENTS, NULL, 0, 0,
     "gradients of more parameters", "parameters that were added"},
    {"M||module a;L|.outs|list of 9|9;T|[3]|Tensor [8, 8] float32", NULL,
     "out", 1, 7, "graph of kept outputs", "`out.detach()` in outs"},
    {"M||module a;L|.outs|list of 9|9;T|[3]|Tensor [8, 8] float32", NULL,
     "out", 1, 0, "container grows", "clear outs"},
    {"F||a.py:3 main;O|local net|Net;T|.hidden|Tensor [8, 16] float32", NULL,
     NULL, 2, 30, "state keeps its graph", "`hidden = hidden.detach()`"},
    {"F||a.py:3 main;t|local h|tuple of 2|2;T|[1]|Tensor [8, 16] float32",
     NULL, NULL, 1, 30, "state keeps its graph",
     "`h = tuple(x.detach() for x in h)`"},
    {"F||a.py:3 main;L|local h|list of 2|2;T|[1]|Tensor [8, 16] float32", NULL,
     "x", 1, 30, "graph of kept outputs", "`x.detach()` in h"},
    {"F||a.py:3 main;t|local h|tuple of 9|9;T|[1]|Tensor [8, 16] float32",
     NULL, "x", 1, 30, "graph of kept outputs", "`x.detach()` in h"},
    {"F||a.py:3 main;T|local total|Tensor [3] float32", NULL, NULL, 1, 0,
     "kept", "set total = None"},
    /* default argument */
    {"M||module a;f|.note|function note;t|__defaults__|tuple of 1|1;"
     "L|default seen|list of 9|9;T|[3]|Tensor [4]",
     NULL, NULL, 3, 0, "default argument", "write `seen=None`"},
    {"M||module a;f|.note|function note;D|__kwdefaults__|dict of 1|1;"
     "D|default seen|dict of 2|2;L|['x']|list of 9|9;T|[3]|Tensor [4]",
     NULL, NULL, 4, 0, "default argument", "write `seen=None`"},
    {"M||module a;L|.calls|list of 9|9;f|[3]|function note;"
     "t|__defaults__|tuple of 1|1;T|default x|Tensor [4]",
     NULL, NULL, 1, 0, "container grows", "clear calls"},
    {"M||module a;f|.note|function note;t|__defaults__|tuple of 1|1;"
     "O|default log|Log;L|.items|list of 9|9;T|[3]|Tensor [4]",
     NULL, NULL, 4, 0, "container grows", "clear items"},
    /* context variable */
    {"O||thread MainThread;O|context|Context;t|contextvar trace|tuple of 9|9;"
     "T|[3]|Tensor [4]",
     NULL, NULL, 2, 0, "context variable", "set trace to less"},
    {"O||thread MainThread;O|context|Context;O|contextvar trace|Log;"
     "L|.items|list of 9|9;T|[3]|Tensor [4]",
     NULL, NULL, 3, 0, "container grows", "clear items"},
    /* deque without a bound */
    {"F||a.py:3 main;O|local last|collections.deque of 9|9;T|[*]|Tensor [4]",
     NULL, NULL, 1, 0, "deque without a bound", "give last a bound"},
    {"F||a.py:3 main;O|local last|collections.deque.Odd of 9|9;"
     "T|[*]|Tensor [4]",
     NULL, NULL, 1, 0, "container grows", "clear last"},
    /* modules pile up */
    {"F||a.py:3 main;O|local net|Net;D|._modules|dict of 2|2;"
     "O|['heads']|ModuleList;D|._modules|dict of 9|9;O|['3']|Linear;"
     "D|._parameters|dict of 1|1;T|['weight']|Parameter [4]",
     NULL, NULL, 4, 0, "modules pile up", "make the modules of "},
    {"F||a.py:3 main;O|local net|Net;D|._modules|list of 9|9;T|['3']|Tensor",
     NULL, NULL, 1, 0, "kept", "set net = None"},
    /* hook captures its tensor */
    {"O||C++ only;D||collections.OrderedDict of 1|1;f|[15]|function <lambda>;"
     "T|cell out|Tensor [4]",
     NULL, NULL, 0, 0, "hook captures its tensor", "capture out.detach()"},
    {"O||C++ only;D||collections.OrderedDict of 1|1;f|[15]|function step;"
     "D|cell opts|dict of 4|4;T|key|Parameter [4]",
     NULL, NULL, 0, 0, "hook captures its tensor",
     "the hook keeps opts, which keeps the hook: clear opts when done, or "
     "call "
     "handle.remove()"},
    {"O||C++ only;D||collections.OrderedDict of 1|1;f|[15]|function step;"
     "O|cell net|Net;T|.weight|Parameter [4]",
     NULL, NULL, 0, 0, "hook captures its tensor",
     "let it capture weakref.ref(net), or call"},
    {"O||C++ only;D||collections.OrderedDict of 1|1;f|['a']|function <lambda>;"
     "T|cell out|Tensor [4]",
     NULL, NULL, 0, 0, "kept", "drop this reference"},
    {"O||C++ only;f||function <lambda>;T|cell out|Tensor [4]", NULL, NULL, 0,
     0, "kept", "drop this reference"},
    {"O||C++ only;D||collections.OrderedDict of 1|1;f|[15]|function <lambda>;"
     "t|__defaults__|tuple of 1|1;T|default out|Tensor [4]",
     NULL, NULL, 0, 0, "kept", "drop this reference"},
    /* names by which a dict is filled */
    {"F||a.py:3 main;O|local t|Trainer;D|.history|dict of 1|1;"
     "L|['loss']|list of 9|9;T|[3]|Tensor [] float32",
     NULL, NULL, 3, 7, "graph of a kept scalar",
     "`history['loss'].append(loss.item())`"},
    {"F||a.py:3 main;L|local rows|list of 2|2;D|[1]|dict of 1|1;"
     "L|['x']|list of 9|9;T|[3]|Tensor [4]",
     NULL, NULL, 3, 0, "container grows", "clear rows[...]['x'] "},
    /* behind a frame that a traceback keeps */
    {"M||module a;X|.last|OSError;B|__traceback__|traceback;"
     "F|tb_frame|frame;L|local outs|list of 9|9;T|[3]|Tensor [4]",
     NULL, NULL, 4, 0, "container grows", "clear outs"},
    /* global cache */
    {"M||module a;D|.seen|dict of 90|90;T|[3]|Tensor [8]", NULL, NULL, 1, 0,
     "global cache", "give seen a bound"},
    {"M||module a;C|.Net|class Net;D|.seen|dict of 90|90;T|[3]|Tensor [8]",
     NULL, NULL, 2, 0, "global cache", "give seen a bound"},
    {"F||a.py:3 main;D|local seen|dict of 90|90;T|[3]|Tensor [8]", NULL, NULL,
     1, 0, "container grows", "clear seen"},
    {"M||module a;O|.net|Net;D|.seen|dict of 90|90;T|[3]|Tensor [8]", NULL,
     NULL, 2, 0, "container grows", "clear seen"},
    /* gradients keep their graph */
    {"F||a.py:3 main;L|local params|list of 4|4;T|[0]|Parameter [4]",
     "gradient", NULL, 1, 9, "gradient not cleared", "zero_grad"},
    {"F||a.py:3 main;L|local params|list of 4|4;T|[0]|Parameter [4]", "other",
     NULL, 1, 9, "gradients keep their graph", "create_graph=True"},
    {"F||a.py:3 main;O|local net|Net;T|.weight|Parameter [4]", "other", NULL,
     2, 9, "gradients keep their graph", "not to zero"},
    {"F||a.py:3 main;L|local outs|list of 4|4;T|[0]|Tensor [4]", "other", NULL,
     1, 9, "graph of kept outputs", "detach() before you keep it"},
    {"F||a.py:3 main;L|local params|list of 4|4;T|[0]|Parameter [4]", "other",
     NULL, 1, 0, "container grows", "clear params"},
    /* parameters get larger */
    {"F||a.py:3 main;O|local lm|LM;D|._modules|dict of "
     "2|2;O|['emb']|Embedding;"
     "D|._parameters|dict of 1|1;T|['weight']|Parameter [4]",
     CM_HOLDING_MODEL, NULL, 2, 0, "parameters get larger",
     "emb gets larger each time"},
    {"F||a.py:3 main;O|local lm|LM;T|.table|Parameter [4]", CM_HOLDING_MODEL,
     NULL, 2, 0, "parameters get larger", "table gets larger each time"},
    {"M||module a", CM_HOLDING_OF_MODEL, NULL, 0, 0, "parameters get larger",
     "of a parameter that gets larger"},
    {"M||module a", CM_HOLDING_MODEL, NULL, 0, 0, "C++ only", "C extension"},
    /* a tuple has no clear() */
    {"F||a.py:3 main;t|local states|tuple of 9|9;T|[3]|Tensor [4]", NULL, NULL,
     1, 0, "container grows", "set states = () when"},
};

#endif
