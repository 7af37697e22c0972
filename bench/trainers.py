# SPDX-License-Identifier: MIT
# Copyright the cumem authors
"""The trainers of transformers and Lightning: is a leak in them told with its
holder, and is a program without one left alone?

    python bench/trainers.py

Each check is a process of its own and prints what it saw; exit status 1 when
one failed.  Needs torch; a trainer that is not installed is named.
"""

import sys

import checks
import measure

BEGIN = """
import os, sys
""" + measure.STARTED + """\
import torch

class Rows(torch.utils.data.Dataset):
    def __init__(self, count, make):
        self.count, self.make = count, make
    def __len__(self):
        return self.count
    def __getitem__(self, i):
        return self.make(i)

def imported(name):
    try:
        return __import__(name)
    except ImportError as error:
        print(f"{name} is not installed: {error}")
        raise SystemExit

def faults():
    rows = [row for row in cumem.growth() if row["verdict"] in ("leak", "lingering")]
    for row in rows:
        print(row["verdict"], row["device"], f"{row['bytes_per_iteration']:,.0f} B",
              " > ".join(step["edge"] for step in row["holder"]), "|", row["advice"])
    return rows
"""

TRANSFORMERS = """
transformers = imported("transformers")
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments

def row(i):
    return {"input_ids": torch.randint(0, 1000, (64,)), "labels": i % 2,
            "attention_mask": torch.ones(64, dtype=torch.long)}

class Kept(Trainer):
    seen = []
    def compute_loss(self, model, inputs, return_outputs=False, **more):
        loss, outputs = super().compute_loss(
            model, {**inputs, "output_hidden_states": True}, return_outputs=True, **more)
        if LEAKS:
            self.seen.append(outputs.hidden_states)
        return (loss, outputs) if return_outputs else loss

def main():
    model = BertForSequenceClassification(BertConfig(
        vocab_size=1000, hidden_size=128, num_hidden_layers=2, num_attention_heads=4,
        intermediate_size=256))
    arguments = TrainingArguments(
        output_dir="out", per_device_train_batch_size=16, gradient_accumulation_steps=2,
        max_steps=40, save_strategy="no", eval_strategy="steps", eval_steps=10,
        report_to=[], disable_tqdm=True, logging_strategy="no")
    Kept(model=model, args=arguments, train_dataset=Rows(1024, row),
         eval_dataset=Rows(64, row)).train()
    return faults()
"""

LIGHTNING = """
lightning = imported("pytorch_lightning")

class Model(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = torch.nn.Sequential(*[torch.nn.Linear(512, 512) for _ in range(4)])
        self.outputs = []
    def training_step(self, batch, index):
        output = self.net(batch)
        if LEAKS:
            self.outputs.append(output)
        return output.square().mean()
    def validation_step(self, batch, index):
        self.log("val", self.net(batch).square().mean())
    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters())

class Cleared(Model):
    def optimizer_step(self, *a, **k):
        super().optimizer_step(*a, **k); self.zero_grad()

def main(kind):
    loader = torch.utils.data.DataLoader(Rows(128 * 15, lambda i: torch.randn(512)), 128)
    trainer = lightning.Trainer(
        max_epochs=3, devices=1, logger=False, enable_checkpointing=False,
        enable_progress_bar=False, enable_model_summary=False)
    trainer.fit(kind(), loader, loader)
    return faults()
"""

WARN = {"CUMEM_WARN_CYCLES": 1, "TOKENIZERS_PARALLELISM": "false", "HF_HUB_OFFLINE": 1}

CHECKS = {
    "transformers: hidden states kept by compute_loss()": (WARN, TRANSFORMERS + """
LEAKS = True
rows = main()
assert rows and {row["verdict"] for row in rows} == {"leak"}, rows
assert any("seen" in step["edge"] for step in rows[0]["holder"]) and "seen" in rows[0]["advice"]
"""),
    "transformers: nothing kept": (WARN, TRANSFORMERS + """
LEAKS = False
assert main() == []
"""),
    "Lightning: outputs kept by the module": (WARN, LIGHTNING + """
LEAKS = True
leaks = [row for row in main(Cleared) if row["verdict"] == "leak"]
assert leaks and any("outputs" in step["edge"] for step in leaks[0]["holder"])
"""),
    "Lightning: its gradients stay through the forward": (WARN, LIGHTNING + """
LEAKS = False
rows = main(Model)
assert rows and {row["rule"] for row in rows} == {"gradient cleared late by Lightning"}, rows
"""),
    "Lightning: gradients cleared as advised": (WARN, LIGHTNING + """
LEAKS = False
assert main(Cleared) == []
"""),
}

if __name__ == "__main__":
    sys.exit(checks.run(BEGIN, CHECKS))
