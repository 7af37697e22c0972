/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors
 *
 * A library that calls back: what stands between a test and its callback. */

int fake_framework_call(void (*callback)(void *), void *context);

int
fake_framework_call(void (*callback)(void *), void *context)
{
    volatile int frames = 1; /* so that the call is no jump */
    callback(context);
    return frames;
}
