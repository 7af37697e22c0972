/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef STORES_H
#define STORES_H

/* For tests only: before this, Python.h. */

#include "../../detector/records.h"

PyObject *probe_text(const struct cm_records *all, struct cm_text_id id);
/* What is known of a code object, by lists of its stores. */
PyObject *probe_code(const struct cm_records *all, struct cm_code_id id);

#endif
