/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef CM_FAKE_CUPTI_H
#define CM_FAKE_CUPTI_H

/* What tests tell the stand-in for libcupti, by dlsym("fake_cupti"). */

#include <stdbool.h>
#include <stdint.h>

struct fake_cupti {
    /* Forgets everything, also a subscriber. */
    void (*reset)(void);
    /* The result of the next cuptiSubscribe calls. */
    void (*refuse)(int result);
    /* The same of cuptiSubscribe_v2 alone, as with an older driver. */
    void (*refuse_shared)(int result);
    /* Another tool subscribes by interface 1 or 2: the result; or it goes. */
    int (*other_comes)(int interface);
    void (*other_goes)(void);
    /* By which one cumem has subscribed; 0: it has not. */
    int (*interface)(void);
    /* Enabling this entry point, or any of this domain, fails. */
    void (*refuse_name)(const char *name);
    void (*refuse_domain)(int domain);
    /* Names the entry points of another age. */
    void (*rename_calls)(bool renamed);
    /* As cuptiFinalize() by somebody else. */
    void (*finalize)(void);
    int (*subscribers)(void);
    /* A driver call of this name begins or ends; nothing happens when it is
     * not enabled. */
    void (*fire)(const char *name, int site, const void *params, int result,
                 void *context);
    void (*fire_resource)(uint32_t id, void *context);
    void (*fire_state)(uint32_t id);
    /* As a hostile or later version might: anything. */
    void (*fire_raw)(int domain, uint32_t id, const void *data);
    /* The context of a device has this address. */
    void *(*context_of)(int device);
};

#endif
