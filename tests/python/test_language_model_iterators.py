"""Answers of language models as iterators: closed, dropped, in threads, interrupted; conversations."""

import asyncio
import gc
import os
import pathlib
import signal
import subprocess
import sys
import threading
import time

import pytest
import tiny_model

import rlx
import rlx.models


def test_closing_and_dropping(model):
    for end in (lambda a: a.close(), lambda a: a.__exit__(None, None, None)):
        answer = model.generate("abc", seed=1, stop_tokens=[])
        piece = next(answer)
        end(answer)
        assert answer.finish_reason == "cancelled" and answer.text == piece and list(answer) == []
        end(answer)
    with model.generate("abc", seed=1, stop_tokens=[]) as answer:
        assert next(answer) and iter(answer) is answer
    assert answer.finish_reason == "cancelled"
    dropped = model.generate("abc", seed=1, stop_tokens=[])
    next(dropped)
    del dropped
    gc.collect()
    model.logits([1, 2])  # nothing runs any more
    model.reset()
    done = model.generate("abc", seed=1, max_new_tokens=3).finish()
    done.close()
    assert done.finish_reason == "max_tokens"
    with pytest.raises(StopIteration):
        next(done)


def test_an_answer_keeps_its_model(folder):
    answer = rlx.models.load(folder).generate("abc", temperature=0, max_new_tokens=9, stop_tokens=[])
    gc.collect()
    assert len(answer.finish().tokens) == 9


def test_threads_share_a_model(model):
    prompts = [f"number {i}" for i in range(8)]
    alone = [model.generate(p, seed=i, max_new_tokens=25).finish().tokens.tolist() for i, p in enumerate(prompts)]
    found = [None] * len(prompts)

    def work(i):
        for _ in range(2):
            answer = model.generate(prompts[i], seed=i, max_new_tokens=25)
            text = "".join(answer)
            found[i] = answer.tokens.tolist() if text == answer.text else None

    threads = [threading.Thread(target=work, args=(i,)) for i in range(len(prompts))]
    for t in threads:
        t.start()
    for t in threads:
        t.join(60)
    assert found == alone


def test_one_iterator_in_two_threads(model):
    whole = model.generate("abc", seed=2, max_new_tokens=60, stop_tokens=[]).finish()
    answer = model.generate("abc", seed=2, max_new_tokens=60, stop_tokens=[])
    seen = [[], []]
    threads = [threading.Thread(target=lambda s=s: s.extend(answer)) for s in seen]
    for t in threads:
        t.start()
    for t in threads:
        t.join(60)
    assert answer.text == whole.text and answer.tokens.tolist() == whole.tokens.tolist()
    assert sorted("".join(seen[0] + seen[1])) == sorted(whole.text)


def test_the_gil_is_free_during_a_step(folder):
    m = rlx.models.load(folder, threads=1)
    counted, done = [0], threading.Event()

    def count():
        while not done.is_set():
            counted[0] += 1
            time.sleep(0)

    thread = threading.Thread(target=count)
    interval = sys.getswitchinterval()
    sys.setswitchinterval(3600)  # nobody has to give the GIL away: what another thread does, a call has let it do
    try:
        thread.start()
        grew, until = False, time.monotonic() + 30
        while not grew and time.monotonic() < until:
            m.reset()
            before = counted[0]
            m.logits(list(range(200)))
            grew = counted[0] > before
    finally:
        done.set()
        sys.setswitchinterval(interval)
        thread.join(30)
    assert grew


def test_async_for(model):
    async def said(answer):
        return [piece async for piece in answer]

    async def several():
        answers = [model.generate(p, seed=1, max_new_tokens=20, stop_tokens=[]) for p in ("ab", "cd")]
        return await asyncio.gather(*map(said, answers))

    wanted = [model.generate(p, seed=1, max_new_tokens=20, stop_tokens=[]).finish().text for p in ("ab", "cd")]
    assert ["".join(pieces) for pieces in asyncio.run(several())] == wanted

    async def stopped(answer):
        began = asyncio.Event()

        async def first_alone():
            async for _ in answer:
                began.set()
                await asyncio.sleep(3600)

        task = asyncio.create_task(first_alone())
        await began.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    answer = model.generate("ab", seed=1, stop_tokens=[])
    asyncio.run(stopped(answer))
    assert answer.finish_reason == "cancelled" and answer.text
    model.logits([1])  # nothing runs any more
    model.reset()


def test_ctrl_c_ends_an_answer(folder, tmp_path):
    program = tmp_path / "endless.py"
    program.write_text(
        "import sys, rlx.models\n"
        "m = rlx.models.load(sys.argv[1])\n"
        "ask = lambda: m.generate('abc', temperature=0, stop_tokens=[], logit_bias={0xC3: 1e4})\n"
        "a = ask()\n"
        "print('ready', flush=True)\n"
        "try:\n"
        "    while True:\n"
        "        a.finish()\n"
        "        a = ask()\n"
        "except KeyboardInterrupt:\n"
        "    print('interrupted', a.finish_reason, flush=True)\n"
        "a.close()\n"
        "print(len(m.generate('abc', temperature=0, max_new_tokens=4, stop_tokens=[]).finish().tokens))\n"
    )
    env = {**os.environ, "PYTHONPATH": str(pathlib.Path(rlx.__file__).parent.parent)}
    run = subprocess.Popen(
        [sys.executable, program, folder],
        stdout=subprocess.PIPE,
        text=True,
        env=env,
        # A job in the background has it ignored, and Python then leaves it so.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    try:
        assert run.stdout.readline() == "ready\n"
        threading.Event().wait(0.3)
        run.send_signal(signal.SIGINT)
        rest, _ = run.communicate(timeout=60)
    finally:
        run.kill()
    assert rest.startswith("interrupted ") and rest.endswith("\n4\n")
    assert rest.split()[1] in ("cancelled", "context_full", "None")


def test_ctrl_c_ends_a_load(tmp_path, monkeypatch):
    monkeypatch.setattr(tiny_model, "LAYERS", 24)
    folder = tmp_path / "m"
    tiny_model.write(folder)
    # Python runs its handlers between calls. That it runs this one many times while one call lasts says that the call
    # asks for them, between parts of its work.
    seen, most = [], 0
    before = signal.signal(signal.SIGINT, lambda *_: seen.append(1))
    over = threading.Event()

    def press():
        while not over.wait(0.0005):
            os.kill(os.getpid(), signal.SIGINT)

    presses = threading.Thread(target=press)
    presses.start()
    try:
        for _ in range(30):
            seen.clear()
            rlx.models.load(folder)
            most = max(most, len(seen))
            if most > 4:
                break
    finally:
        over.set()
        presses.join()
        signal.signal(signal.SIGINT, before)
    assert most > 4

    def press_once():
        os.kill(os.getpid(), signal.SIGINT)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    timer = threading.Timer(0.3, press_once)
    try:
        with pytest.raises(KeyboardInterrupt):
            timer.start()
            while True:
                rlx.models.load(folder)
    finally:
        timer.cancel()
        signal.signal(signal.SIGINT, before)
    assert rlx.models.load(folder).generate("a", max_new_tokens=1, stop_tokens=[]).finish().tokens.size == 1


def test_a_conversation_that_was_loaded_is_saved_as_it_was(model, tmp_path):
    options = dict(mirostat=2, seed=5, stop_tokens=[])
    whole = model.chat([{"role": "user", "content": "Hello"}], max_new_tokens=24, **options).finish()
    talk = rlx.models.Conversation(model, **options)
    assert "".join(talk.say("Hello", max_new_tokens=6))
    talk.save(tmp_path / "first")
    again = rlx.models.Conversation.load(model, tmp_path / "first", **options)
    assert again.messages == talk.messages
    again.save(tmp_path / "second")
    rest = model.resume(tmp_path / "second", max_new_tokens=18, **options).finish()
    assert [*whole.tokens[:6], *rest.tokens] == [*whole.tokens]
    assert (tmp_path / "second").read_bytes() == (tmp_path / "first").read_bytes()


def test_conversations(model):
    talk = rlx.models.Conversation(model, system="Be brief.", temperature=0, max_new_tokens=6)
    first = "".join(talk.say("Hello"))
    assert [m["role"] for m in talk.messages] == ["system", "user", "assistant"]
    assert talk.messages[-1]["content"] == first
    text = model.chat_template.render([*talk.messages, {"role": "user", "content": "And?"}])
    reused = model.statistics["reused_tokens"]
    assert "".join(talk.say("And?", max_new_tokens=3)) == (
        model.generate(model.tokenizer.encode(text), temperature=0, max_new_tokens=3).finish().text
    )
    assert len(talk.messages) == 5 and model.statistics["reused_tokens"] >= reused
    with pytest.raises(TypeError):
        talk.say("x", colour=1)
    pieces = talk.say("once more")
    next(pieces)
    pieces.close()
    assert len(talk.messages) == 7


def test_what_is_said_of_a_model(model, folder):
    c = model.config
    assert c["family"] == "llama" and c["vocab_size"] == tiny_model.VOCAB and c["head_dim"] == tiny_model.DIM
    assert c["num_layers"] == len(c["layers"]) == tiny_model.LAYERS and c["ropes"][0]["theta"] == tiny_model.THETA
    assert model.context == tiny_model.CONTEXT and model.sequences == 3
    assert model.end_tokens.tolist() == [tiny_model.EOS]
    counted = "runs prompt_tokens reused_tokens generated_tokens preemptions drafted_tokens accepted_tokens"
    assert set(model.statistics) == set(counted.split())
    assert "llama" in repr(model) and "tokens" in repr(model.generate("a", max_new_tokens=1).finish())


def test_a_model_whose_files_hold_no_template(tmp_path):
    tiny_model.write(tmp_path / "m", template=False)
    m = rlx.models.load(tmp_path / "m")
    assert m.chat_template is None
    with pytest.raises(rlx.Unsupported, match="has no chat template"):
        m.chat("Hello")
    assert m.generate("Hello", max_new_tokens=2, stop_tokens=[]).finish().tokens.size == 2
