/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

#include <stdio.h>
#include <string.h>

#include "../graph/birth.h"
#include "fail_each.h"

enum { FRAMES = 4 };

/* "FILE FUNCTION [CALL]; ...", innermost first; files under /lib/ are
 * libraries', and each frame is at line 7, where CALL is called. */
static struct cm_site_id
site_of(struct cm_records *records, const char *text)
{
    char line[400], file[80], function[40], call[40];
    struct cm_texts *texts = cm_records_texts(records);
    struct cm_frame frames[FRAMES];
    struct cm_site site = {.frames = frames};
    struct cm_site_id id;
    char *more = line, *part;
    snprintf(line, sizeof line, "%s", text);
    while ((part = strsep(&more, ";")) != NULL) {
        int found = sscanf(part, "%79s %39s %39s", file, function, call);
        struct cm_store store = {.kind = CM_STORE_CALL, .line = 7};
        struct cm_code code = {.filename = cm_texts_intern(texts, file),
                               .name = cm_texts_intern(texts, function),
                               .library = strncmp(file, "/lib/", 5) == 0,
                               .stores = &store,
                               .store_count = found == 3};
        store.name = found == 3 ? cm_texts_intern(texts, call) : store.name;
        assert_int_equal(cm_records_add_code(records, &code,
                                             &frames[site.frame_count].code),
                         CM_OK);
        frames[site.frame_count++].line = 7;
    }
    assert_int_equal(cm_records_add_site(records, &site, &id), CM_OK);
    return id;
}

static void
is_told_by_the_stack(void **state)
{
    static const struct {
        const char *stack;
        enum cm_birth birth;
    } cases[] = {
        {"/a.py main", CM_BIRTH_OTHER},
        {"/a.py main to", CM_BIRTH_INPUT},
        {"/a.py main cuda", CM_BIRTH_INPUT},
        {"/a.py main total", CM_BIRTH_OTHER},
        {"/lib/accelerate/utils.py send to;/a.py main", CM_BIRTH_INPUT},
        {"/a.py forward;/a.py main to", CM_BIRTH_OTHER},
        {"/a.py forward to;/lib/torch/nn/modules/module.py _call_impl",
         CM_BIRTH_COMPUTED},
        {"/lib/torch/nn/modules/module.py convert to;/a.py main to",
         CM_BIRTH_OTHER},
        {"/lib/torch/optim/adam.py step to;/a.py main", CM_BIRTH_OTHER},
        {"/lib/torch/utils/data/_utils/collate.py default_collate;/a.py main",
         CM_BIRTH_INPUT},
        {"/mine/torch/utils/data/x.py f;/a.py main", CM_BIRTH_OTHER},
        {"/lib/torch/_utils.py rebuild;/lib/torch/serialization.py load",
         CM_BIRTH_LOADED},
        {"/lib/safetensors/torch.py load_file;/a.py main", CM_BIRTH_LOADED},
        {"/lib/torch/_tensor.py __deepcopy__;/lib/copy.py deepcopy",
         CM_BIRTH_COPIED},
        {"/lib/copy.py copy;/a.py main", CM_BIRTH_OTHER},
        {"/copy.py deepcopy;/a.py main", CM_BIRTH_OTHER},
    };
    (void)state;
    struct cm_records *records = cm_records_new(1 << 20);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        enum cm_birth birth =
            cm_birth_of(records, site_of(records, cases[i].stack));
        if (birth != cases[i].birth) {
            fail_msg("%s: %d, not %d", cases[i].stack, (int)birth,
                     (int)cases[i].birth);
        }
    }
    cm_records_free(records);
}

static void
knows_nothing_of_no_stack(void **state)
{
    (void)state;
    struct cm_records *records = cm_records_new(1 << 20);
    assert_int_equal(cm_birth_of(records, (struct cm_site_id){0}),
                     CM_BIRTH_OTHER);
    cm_records_free(records);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(is_told_by_the_stack),
        cmocka_unit_test(knows_nothing_of_no_stack),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
