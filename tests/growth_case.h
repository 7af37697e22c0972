/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */
#ifndef GROWTH_CASE_H
#define GROWTH_CASE_H

/* Simulated series, by kind: what programs do with memory, good and bad.  A
 * kind, a number and nothing else make a series, so all is repeatable. */

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { GROWTH_ITERATIONS = 1500 };

enum growth_class {
    GROWTH_GOOD,   /* never a leak */
    GROWTH_STEADY, /* a leak of the same bytes in every iteration */
    GROWTH_LEAK,   /* any other */
    GROWTH_RAMP,   /* linear until a bound that nobody knows of */
};

struct growth_case {
    double bytes[GROWTH_ITERATIONS];
    double unit;    /* bytes of one thing */
    int start, end; /* where a leak begins; where a ramp ends */
    bool bounded;   /* the holder is known to have a size */
    uint64_t random;
};

struct growth_kind {
    const char *name;
    enum growth_class class;
    void (*write)(struct growth_case *self);
};

/* ---- numbers */

/* splitmix64 (Steele, Lea, Flood 2014). */
static inline uint64_t
growth_bits(struct growth_case *self)
{
    uint64_t z = self->random += UINT64_C(0x9E3779B97F4A7C15);
    z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
    return z ^ z >> 31;
}

static inline double
growth_part(struct growth_case *self)
{
    return (double)(growth_bits(self) >> 11) * 0x1p-53;
}

static inline double
growth_between(struct growth_case *self, double low, double high)
{
    return low + (high - low) * growth_part(self);
}

/* Small ones as often as large ones. */
static inline double
growth_scale(struct growth_case *self, double low, double high)
{
    return low * exp(growth_part(self) * log(high / low));
}

static inline int
growth_pick(struct growth_case *self, int low, int high)
{
    return low + (int)(growth_bits(self) % (uint64_t)(high - low + 1));
}

/* Nearly normal, deviation 1: twelve uniform ones. */
static inline double
growth_normal(struct growth_case *self)
{
    double sum = -6;
    for (int i = 0; i < 12; i++) {
        sum += growth_part(self);
    }
    return sum;
}

/* ---- pieces */

#define GROWTH_EACH(t) for (int t = 0; t < GROWTH_ITERATIONS; t++)

static inline void
growth_add_base(struct growth_case *self)
{
    double base = self->unit * growth_scale(self, 1, 200);
    int from = growth_pick(self, 0, 2);
    GROWTH_EACH(t)
    {
        self->bytes[t] += t >= from ? base : 0;
    }
}

static inline void
growth_add_noise(struct growth_case *self, double deviation)
{
    int shape = growth_pick(self, 0, 2);
    GROWTH_EACH(t)
    {
        double noise = shape == 0   ? growth_normal(self)
                       : shape == 1 ? growth_between(self, -1.7, 1.7)
                                    : exp(growth_normal(self) * 0.7) - 1;
        self->bytes[t] += (noise + 4) * deviation;
    }
}

/* Up by one thing for each iteration of a tooth, and down to nothing. */
static inline void
growth_add_teeth(struct growth_case *self, int period, double height)
{
    int phase = growth_pick(self, 0, period - 1);
    GROWTH_EACH(t)
    {
        self->bytes[t] += height * ((t + phase) % period) / period;
    }
}

/* An evaluation every `period` iterations that lasts for `length`. */
static inline void
growth_add_phases(struct growth_case *self, int period, int length,
                  double height)
{
    bool ramps = length <= 8 && growth_pick(self, 0, 1);
    GROWTH_EACH(t)
    {
        int at = t % period - (period - length);
        if (at >= 0) {
            self->bytes[t] += ramps ? height * (at + 1) / length : height;
        }
    }
}

static inline void
growth_add_line(struct growth_case *self, double slope)
{
    GROWTH_EACH(t)
    {
        self->bytes[t] += t > self->start ? slope * (t - self->start) : 0;
    }
}

/* ---- good kinds */

static inline void
growth_constant(struct growth_case *self)
{
    growth_add_base(self);
}

/* Optimizer state, lazy modules, layers that thaw: one to three steps. */
static inline void
growth_few_steps(struct growth_case *self)
{
    int steps = growth_pick(self, 1, 3);
    growth_add_base(self);
    for (int i = 0; i < steps; i++) {
        int at = i == 0 ? growth_pick(self, 1, 4)
                        : growth_pick(self, 5, GROWTH_ITERATIONS - 1);
        double height = self->unit * growth_scale(self, 1, 500);
        GROWTH_EACH(t)
        {
            self->bytes[t] += t >= at ? height : 0;
        }
    }
}

static inline void
growth_cache_of_log(struct growth_case *self)
{
    double many = growth_scale(self, 5, 100);
    double slow = growth_between(self, 0.5, 4);
    growth_add_base(self);
    GROWTH_EACH(t)
    {
        self->bytes[t] += floor(many * log(1 + t / slow)) * self->unit;
    }
}

static inline void
growth_cache_that_saturates(struct growth_case *self)
{
    double slow = growth_between(self, 2, 15);
    double many = growth_scale(self, 20, 2000);
    int start = growth_pick(self, 0, 1) ? 0 : growth_pick(self, 10, 500);
    GROWTH_EACH(t)
    {
        double full = t < start ? 0 : 1 - exp((start - t) / slow);
        self->bytes[t] += floor(many * full) * self->unit;
    }
}

/* Keys drawn at random, each kept once it was drawn. */
static inline void
growth_cache_of_keys(struct growth_case *self)
{
    enum { KEYS = 400 };
    bool seen[KEYS] = {false};
    int keys = growth_pick(self, 20, KEYS), kept = 0;
    int draws = keys / growth_pick(self, 2, 12) + 1;
    growth_add_base(self);
    GROWTH_EACH(t)
    {
        for (int i = 0; i < draws; i++) {
            int key = growth_pick(self, 0, keys - 1);
            kept += !seen[key];
            seen[key] = true;
        }
        self->bytes[t] += kept * self->unit;
    }
}

/* A workspace as large as the largest batch so far. */
static inline void
growth_largest_so_far(struct growth_case *self)
{
    double largest = 0, wide = growth_between(self, 0.1, 1);
    GROWTH_EACH(t)
    {
        double size = exp(wide * growth_normal(self)) * 20 * self->unit;
        largest = size > largest ? size : largest;
        self->bytes[t] += largest;
    }
}

static inline void
growth_double_buffer(struct growth_case *self)
{
    int buffers = growth_pick(self, 2, 5);
    growth_add_base(self);
    GROWTH_EACH(t)
    {
        self->bytes[t] += self->unit * (1 + t % buffers);
    }
}

static inline void
growth_evaluation(struct growth_case *self)
{
    int period = growth_pick(self, 15, 200);
    int length = growth_pick(self, 1, period / 2);
    growth_add_base(self);
    growth_add_phases(self, period, length,
                      self->unit * growth_scale(self, 2, 200));
    if (growth_pick(self, 0, 1)) {
        growth_add_noise(self, self->unit * growth_between(self, 0, 3));
    }
}

static inline void
growth_teeth(struct growth_case *self)
{
    int period = growth_pick(self, 2, 8);
    growth_add_base(self);
    growth_add_teeth(self, period, self->unit * growth_scale(self, 2, 100));
}

static inline void
growth_batch_noise(struct growth_case *self)
{
    growth_add_base(self);
    growth_add_noise(self, self->unit * growth_scale(self, 0.5, 50));
}

/* The batch changes its mean size now and then. */
static inline void
growth_batch_levels(struct growth_case *self)
{
    double level = 10, deviation = growth_between(self, 0.2, 2);
    int change = growth_pick(self, 50, 400);
    growth_add_noise(self, deviation * self->unit);
    GROWTH_EACH(t)
    {
        level = t % change == 0 ? growth_scale(self, 5, 50) : level;
        self->bytes[t] += level * self->unit;
    }
}

static inline void
growth_random_walk(struct growth_case *self)
{
    double level = 100 * self->unit;
    double pull = growth_pick(self, 0, 1) ? growth_scale(self, 0.005, 0.3) : 0;
    GROWTH_EACH(t)
    {
        level += growth_normal(self) * self->unit
                 + pull * (100 * self->unit - level);
        level = level < 0 ? -level : level;
        self->bytes[t] += level;
    }
}

/* Things that come and go by chance: a queue, a pool. */
static inline void
growth_pool(struct growth_case *self)
{
    double rate = growth_between(self, 0.1, 0.9);
    double keep = growth_scale(self, 0.02, 0.3);
    int level = (int)(2 / keep);
    GROWTH_EACH(t)
    {
        int come = growth_part(self) < rate ? growth_pick(self, 1, 3) : 0;
        int go = 0;
        for (int i = 0; i < level; i++) {
            go += growth_part(self) < keep * rate;
        }
        level += come - go;
        self->bytes[t] += level * self->unit;
    }
}

static inline void
growth_add_ramp(struct growth_case *self, int length)
{
    bool noisy = growth_pick(self, 0, 1);
    double level = 0;
    self->end = self->start + length;
    GROWTH_EACH(t)
    {
        if (t > self->start && t <= self->end) {
            level += noisy ? growth_pick(self, 1, 3) : 2;
        }
        self->bytes[t] += level * self->unit;
    }
}

static inline void
growth_short_ramp(struct growth_case *self)
{
    self->start = growth_pick(self, 0, 300);
    growth_add_base(self);
    growth_add_ramp(self, growth_pick(self, 2, 6));
}

static inline void
growth_replay_buffer(struct growth_case *self)
{
    self->start = growth_pick(self, 0, 50);
    self->bounded = true;
    growth_add_ramp(self, growth_pick(self, 20, 1400));
}

static inline void
growth_shrinking(struct growth_case *self)
{
    double slope = self->unit * growth_between(self, 0.1, 1);
    growth_add_noise(self, self->unit * growth_between(self, 0, 3));
    GROWTH_EACH(t)
    {
        self->bytes[t] += slope * (GROWTH_ITERATIONS - t);
    }
}

/* ---- leaks */

static inline void
growth_linear(struct growth_case *self)
{
    self->start = growth_pick(self, 0, 5);
    growth_add_base(self);
    growth_add_line(self, self->unit);
}

static inline void
growth_linear_late(struct growth_case *self)
{
    self->start = growth_pick(self, 100, 1000);
    growth_add_base(self);
    growth_add_line(self, self->unit);
}

/* Sizes differ, but all of them stay: outputs of changing batches. */
static inline void
growth_uneven(struct growth_case *self)
{
    double level = 0, wide = growth_between(self, 0.1, 0.6);
    self->start = growth_pick(self, 0, 1) ? 0 : growth_pick(self, 10, 700);
    growth_add_base(self);
    GROWTH_EACH(t)
    {
        if (t > self->start) {
            level += self->unit * (1 + wide * growth_between(self, -1, 1));
        }
        self->bytes[t] += level;
    }
}

static inline void
growth_linear_noise(struct growth_case *self)
{
    self->start = growth_pick(self, 0, 1) ? 0 : growth_pick(self, 100, 700);
    growth_add_base(self);
    growth_add_noise(self, self->unit * growth_scale(self, 0.1, 10));
    growth_add_line(self, self->unit);
}

static inline void
growth_steps(struct growth_case *self)
{
    int every = growth_pick(self, 2, 50);
    self->start = growth_pick(self, 0, 1) ? 0 : growth_pick(self, 50, 600);
    growth_add_base(self);
    GROWTH_EACH(t)
    {
        int after = t > self->start ? t - self->start : 0;
        self->bytes[t] += self->unit * 4 * (after / every);
    }
}

static inline void
growth_by_chance(struct growth_case *self)
{
    double level = 0, chance = growth_between(self, 0.1, 0.9);
    self->start = growth_pick(self, 0, 1) ? 0 : growth_pick(self, 50, 500);
    growth_add_base(self);
    GROWTH_EACH(t)
    {
        if (t > self->start && growth_part(self) < chance) {
            level += 2 * self->unit;
        }
        self->bytes[t] += level;
    }
}

static inline void
growth_leaking_teeth(struct growth_case *self)
{
    bool late = growth_pick(self, 0, 1);
    int period = growth_pick(self, 2, late ? 8 : 30);
    self->start = late ? growth_pick(self, 50, 300) : 0;
    growth_add_base(self);
    growth_add_teeth(self, period,
                     period * self->unit * growth_between(self, 0.5, 8));
    growth_add_line(self, self->unit);
}

static inline void
growth_accelerating(struct growth_case *self)
{
    double faster = growth_scale(self, 0.005, 0.2);
    self->start = growth_pick(self, 0, 1) ? 0 : growth_pick(self, 50, 500);
    growth_add_base(self);
    GROWTH_EACH(t)
    {
        double after = t > self->start ? t - self->start : 0;
        self->bytes[t] += self->unit * (after + faster * after * after / 2);
    }
}

/* What an epoch leaves behind, under its noise or its evaluation. */
static inline void
growth_each_epoch(struct growth_case *self)
{
    int epoch = growth_pick(self, 15, 50);
    growth_add_base(self);
    GROWTH_EACH(t)
    {
        self->bytes[t] += 8 * self->unit * (t / epoch);
    }
    if (growth_pick(self, 0, 1)) {
        growth_add_noise(self, self->unit * growth_between(self, 0.1, 4));
    }
    else {
        growth_add_phases(self, epoch, growth_pick(self, 1, epoch / 3),
                          self->unit * growth_scale(self, 2, 50));
    }
}

static inline void
growth_leak_after_cache(struct growth_case *self)
{
    growth_cache_that_saturates(self);
    self->start = growth_pick(self, 50, 700);
    growth_add_line(self, self->unit);
}

/* ---- ramps */

static inline void
growth_ramp(struct growth_case *self)
{
    self->start = growth_pick(self, 0, 200);
    growth_add_base(self);
    growth_add_ramp(self, growth_pick(self, 11, 400));
}

static const struct growth_kind growth_kinds[] = {
    {"constant", GROWTH_GOOD, growth_constant},
    {"one to three steps", GROWTH_GOOD, growth_few_steps},
    {"cache, logarithmic", GROWTH_GOOD, growth_cache_of_log},
    {"cache, saturating", GROWTH_GOOD, growth_cache_that_saturates},
    {"cache, keys at random", GROWTH_GOOD, growth_cache_of_keys},
    {"largest batch so far", GROWTH_GOOD, growth_largest_so_far},
    {"double buffers", GROWTH_GOOD, growth_double_buffer},
    {"evaluation phases", GROWTH_GOOD, growth_evaluation},
    {"saw-teeth", GROWTH_GOOD, growth_teeth},
    {"changing batch sizes", GROWTH_GOOD, growth_batch_noise},
    {"batch sizes, levels", GROWTH_GOOD, growth_batch_levels},
    {"random walk", GROWTH_GOOD, growth_random_walk},
    {"pool", GROWTH_GOOD, growth_pool},
    {"short ramp", GROWTH_GOOD, growth_short_ramp},
    {"replay buffer, size known", GROWTH_GOOD, growth_replay_buffer},
    {"shrinking", GROWTH_GOOD, growth_shrinking},
    {"linear", GROWTH_STEADY, growth_linear},
    {"linear, begins late", GROWTH_STEADY, growth_linear_late},
    {"linear, uneven sizes", GROWTH_STEADY, growth_uneven},
    {"linear under noise", GROWTH_LEAK, growth_linear_noise},
    {"steps, every 2 to 50", GROWTH_LEAK, growth_steps},
    {"now and then", GROWTH_LEAK, growth_by_chance},
    {"under saw-teeth", GROWTH_LEAK, growth_leaking_teeth},
    {"accelerating", GROWTH_LEAK, growth_accelerating},
    {"each epoch", GROWTH_LEAK, growth_each_epoch},
    {"after a cache filled", GROWTH_LEAK, growth_leak_after_cache},
    {"ramp, size unknown", GROWTH_RAMP, growth_ramp},
};

enum { GROWTH_KINDS = sizeof(growth_kinds) / sizeof(growth_kinds[0]) };

static inline void
growth_make(struct growth_case *self, size_t kind, uint64_t number)
{
    memset(self, 0, sizeof(*self));
    self->random = number * UINT64_C(0xD1342543DE82EF95) + kind + 1;
    self->unit = floor(growth_scale(self, 1 << 17, 1 << 25) / 512) * 512;
    growth_kinds[kind].write(self);
}

/* As an allocator counts: in blocks of 512 bytes. */
static inline uint64_t
growth_bytes(const struct growth_case *self, int t)
{
    return (uint64_t)(fmax(self->bytes[t], 0) / 512) * 512;
}

#endif
