/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_KEYS_H
#define CM_KEYS_H

/* Whether the keys of a dict that grows come from a set that is there already,
 * so that it fills; or are new each time, so that it never does. */

#include <Python.h>

#include "../../graph/holding.h"

struct cm_devices;

/* `object` may be NULL, or no dict; `devices` too.  Runs no code of the
 * program. */
enum cm_holding_keys cm_keys_of(PyObject *object, struct cm_devices *devices);

#endif
