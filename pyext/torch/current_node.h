/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_CURRENT_NODE_H
#define CM_CURRENT_NODE_H

/* The node of autograd's graph that a thread works for just now, in a backward
 * pass.  Any thread, without the GIL, but for what says otherwise. */

#include <stdbool.h>
#include <stdint.h>

/* Looks for torch's own function in the library at `path`; with the GIL. */
void cm_current_node_start(const char *path);
/* Its address, which is good until the node is done; 0: none, or not known. */
uint64_t cm_current_node(void);
/* It is read where torch keeps it; else torch is asked. */
bool cm_current_node_read(void);
/* Why it is not known; NULL: it is. */
const char *cm_current_node_missing(void);

#endif
