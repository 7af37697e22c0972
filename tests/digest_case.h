/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_DIGEST_CASE_H
#define CM_DIGEST_CASE_H

#include "../reports/digest.h"

/* One line of the program's allocates all that grows: `bytes` by now. */
static inline enum cm_status
cm_case_grow(struct cm_digest *digest, const char *verdict, uint64_t bytes)
{
    static const char *const categories[] = {"other"};
    struct cm_growth_use use;
    const struct cm_timeline_use point = {.device = "cpu",
                                          .by = "step",
                                          .categories = categories,
                                          .bytes = &bytes,
                                          .category_count = 1};

    cm_growth_use_init(&use);
    use.device = "cpu";
    use.category = "other";
    use.verdict = verdict;
    use.bytes = bytes;
    use.bytes_per_iteration = 4096;
    cm_digest_timeline_add(digest, &point);
    return cm_digest_growth(digest, &use, 1, true);
}

#endif
