"""Semantic search: ranks passages for questions by their embeddings, with the encoder all-MiniLM-L6-v2.

usage: 02_minilm_search.py [MODEL_DIR] (or RLX_MODEL_DIR; scripts/demo.sh fetches the model)
"""

import os
import sys

import rlx
import rlx.numpy as rnp

PASSAGES = [
    "Bread rises because yeast eats sugar and gives off carbon dioxide.",
    "The tide follows the moon, and twice a month the sun as well.",
    "A sorted list is searched in a logarithmic number of steps.",
    "Cats sleep for more than half of the day.",
    "Iron rusts where water and oxygen reach it.",
]
QUESTIONS = ["Why does dough get bigger?", "How do I find an item quickly?", "What makes the sea go up and down?"]


@rlx.jit
def ranked(passages: rlx.Array, questions: rlx.Array) -> tuple[rlx.Array, rlx.Array]:
    """The order of passages for each question, best first, and their cosine similarities (vectors have length 1)."""
    scores = questions @ passages.T
    order = rnp.argsort(-scores, axis=1)
    return order, rnp.take_along_axis(scores, order, axis=1)


folder = sys.argv[1] if len(sys.argv) > 1 else os.environ.get("RLX_MODEL_DIR", ".models/all-minilm-l6-v2")
if not os.path.isdir(folder):
    sys.exit(f"{folder} is not a folder: give the model's, or fetch it by scripts/demo.sh")
encoder = rlx.SentenceEncoder(folder)
order, scores = ranked(encoder.embed(PASSAGES), encoder.embed(QUESTIONS))
for question, places, values in zip(QUESTIONS, order.tolist(), scores.tolist()):
    print(question)
    for place, value in list(zip(places, values))[:2]:
        print(f"  {value:.2f}  {PASSAGES[place]}")
