/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_PAGE_H
#define CM_PAGE_H

/* The style and the scripts of the page (page.css, page.js; chart.js where there
 * is something to draw), embedded by the build as NUL-terminated texts, and the
 * hashes that the page's security policy names them by. */

#include <stddef.h>

extern const char cm_page_css[];
extern const char cm_page_js[];
extern const char cm_chart_js[];

/* "sha256-" and 44 characters of base64 and a NUL. */
#define CM_PAGE_HASH_BYTES 52

/* The source expression of a Content-Security-Policy for these bytes. */
void cm_page_hash(const char *bytes, size_t length,
                  char result[CM_PAGE_HASH_BYTES]);

#endif
