/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

/* Lightning's closure is forward, zero_grad(), backward
 * (loops/optimization/automatic.py, 1.x to 2.6): the gradients of the step
 * before stand beside all activations, where memory is at its most.  Each of
 * its gradients is allocated below that file. */

#include "gradient.h"

#include <string.h>

#include "name.h"

/* "pytorch_lightning", "lightning.pytorch" and what they are vendored as. */
static bool
is_lightnings_loop(const struct cm_holding *self, struct cm_code_id id)
{
    const struct cm_code *code = cm_records_code(self->records, id);
    return code->library
           && cm_name_ends_with(cm_records_text(self->records, code->filename),
                                "/loops/optimization/automatic.py");
}

bool
cm_gradient_lingers(const struct cm_holding *self)
{
    return self->category != NULL && strcmp(self->category, "gradient") == 0;
}

bool
cm_gradient_is_lightnings(const struct cm_holding *self)
{
    const struct cm_site *site = cm_records_site(self->records, self->site);
    bool found = false;
    for (uint32_t i = 0; i < site->frame_count && !found; i++) {
        found = is_lightnings_loop(self, site->frames[i].code);
    }
    return found && cm_gradient_lingers(self);
}

char *
cm_gradient_say(const struct cm_holding *self)
{
    (void)self;
    return cm_sentence("call optimizer.zero_grad(set_to_none=True) before the "
                       "next forward pass");
}

char *
cm_gradient_say_lightning(const struct cm_holding *self)
{
    (void)self;
    return cm_sentence(
        "Lightning clears gradients after the next forward pass; sooner: in "
        "the LightningModule `def optimizer_step(self, *a, **k): "
        "super().optimizer_step(*a, **k); self.zero_grad()`");
}
