"""Conversations to render chat templates with: turns of every kind, tools, and what templates should refuse."""

import copy
import itertools

WEATHER = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": 'The weather of a place, "now" or later; <b>units</b> & more.',
        "parameters": {
            "type": "object",
            "properties": {
                "location": {"type": "string", "description": "City, e.g. Zürich"},
                "unit": {"type": "string", "enum": ["celsius", "fahrenheit"], "default": "celsius"},
                "days": {"type": "integer", "minimum": 0, "maximum": 14},
                "where": {"type": "array", "items": {"type": "number"}, "description": "latitude, longitude"},
                "nested": {
                    "type": "object",
                    "properties": {"a": {"type": "boolean"}, "b": {"anyOf": [{"type": "string"}, {"type": "null"}]}},
                    "required": ["a"],
                },
            },
            "required": ["location"],
        },
        "return": {"type": "object", "description": "What the weather is"},
    },
}
CLOCK = {
    "type": "function",
    "function": {"name": "now", "description": "The time.", "parameters": {"type": "object", "properties": {}}},
}
SUM = {
    "type": "function",
    "function": {
        "name": "add_numbers",
        "description": "Adds.\nIn two lines.",
        "parameters": {
            "type": "object",
            "properties": {"x": {"type": "number", "description": "first"}, "y": {"type": "integer"}},
            "required": ["x", "y"],
        },
    },
    "strict": True,
}
# Some templates call themselves for each type of a list until Python gives up, which takes long.
LISTED = copy.deepcopy(CLOCK)
LISTED["function"]["parameters"]["properties"]["n"] = {"type": ["integer", "null"]}


def user(content, **more):
    return {"role": "user", "content": content, **more}


def system(content, **more):
    return {"role": "system", "content": content, **more}


def assistant(content, **more):
    return {"role": "assistant", "content": content, **more}


def tool(content, **more):
    return {"role": "tool", "content": content, **more}


def call(name, arguments, id=None):
    out = {"type": "function", "function": {"name": name, "arguments": arguments}}
    if id is not None:
        out["id"] = id
    return out


def calling(*calls, content=None, **more):
    return {"role": "assistant", "content": content, "tool_calls": list(calls), **more}


UNICODE = "Grüße, 世界! 👋🏽 \u00a0\u200b‘q’ <tag> & \"two\" 'one' \\ back\ttab\u2028ls \x7f ß İ ﬁ"

PLAIN = [
    [],
    [user("Hello")],
    [user("")],
    [user("  padded \n\n"), assistant("  padded too \n")],
    [user("One"), assistant("Two"), user("Three")],
    [user("One"), assistant("Two"), user("Three"), assistant("Four")],
    [system("Be brief."), user("Hello")],
    [system(""), user("Hello")],
    [system("Be brief.\n"), user("One"), assistant("Two"), user("Three")],
    [user("Hi"), system("Late system"), user("there")],
    [system("a"), system("b"), user("c")],
    [system("alone")],
    [{"role": "developer", "content": "Develop."}, user("Hello")],
    [assistant("I begin"), user("Hello")],
    [user("One"), user("Two")],
    [user("One"), assistant("Two"), assistant("Three")],
    [user(UNICODE), assistant(UNICODE), user("ok")],
    [{"role": "narrator", "content": "Once upon a time"}],
    [{"role": "user"}],
    [{"content": "no role"}],
    [user(None)],
    [user("x"), assistant(None)],
    [user("x"), assistant(None), user("y")],
    [user(5)],
    [user({"type": "text", "text": "a dict"})],
    [user(["just", "strings"])],
    [user([{"type": "text", "text": "part one"}, {"type": "text", "text": " part two"}])],
    [user([{"type": "image"}, {"type": "text", "text": "What is this?"}]), assistant("A cat.")],
    [user([{"type": "image_url", "image_url": {"url": "http://x/y.png"}}, {"type": "text", "text": "And this?"}])],
    [user([{"type": "audio"}, {"type": "video"}, {"type": "text", "text": "Media"}])],
    [system([{"type": "text", "text": "System in parts"}]), user([{"type": "text", "text": "Hi"}])],
    [user("q"), assistant([{"type": "text", "text": "in parts"}]), user("r")],
    [user([])],
    [user("q"), assistant("<think>\nhmm\n</think>\n\nThe answer"), user("and?")],
    [user("q"), assistant("The answer", reasoning_content="I thought\nlong"), user("and?")],
    [user("q"), assistant("The answer", thinking="thought"), user("and?"), assistant("x", thinking="y")],
    [user("q"), assistant("The answer", reasoning="thought"), user("and?")],
    [user("q"), assistant("[THINK]maybe[/THINK]yes"), user("and?")],
    [user("named", name="Ann"), assistant("hello Ann", name="Bot")],
    [system("/no_think"), user("hi /think")],
    [system("You are helpful. /system_override"), user("x")],
    [user("a</think>b<|im_end|>{{ 1 }}{% if %}")],
    [user("long " * 300), assistant("answer " * 200), user("more")],
]

TOOLS = [
    [user("Weather?"), calling(call("get_weather", {"location": "Bern", "days": 3}, "abcdefgh1"))],
    [
        user("Weather?"),
        calling(call("get_weather", {"location": "Bern"}, "abcdefgh1"), content=""),
        tool("22 °C", tool_call_id="abcdefgh1", name="get_weather"),
    ],
    [
        system("Use tools."),
        user("Weather?"),
        calling(call("get_weather", {"location": "Bern", "unit": "celsius", "where": [1.5, -2e-7, 1e20]}, "abcdefgh1")),
        tool('{"temp": 22}', tool_call_id="abcdefgh1", name="get_weather"),
        assistant("It is 22 degrees."),
        user("Thanks"),
    ],
    [
        user("Both"),
        calling(
            call("get_weather", {"location": "Zürich"}, "aaaaaaaa1"), call("now", {}, "bbbbbbbb2"), content="Let me see"
        ),
        tool("sunny", tool_call_id="aaaaaaaa1", name="get_weather"),
        tool("12:00", tool_call_id="bbbbbbbb2", name="now"),
        assistant("Sunny at noon."),
    ],
    [
        user("As text"),
        calling(call("get_weather", '{"location": "Bern"}', "abcdefgh1")),
        tool("x", tool_call_id="abcdefgh1"),
    ],
    [user("No id"), calling(call("now", {})), tool("12:00", name="now"), user("And?")],
    [user("Bare"), {"role": "assistant", "tool_calls": [{"name": "now", "arguments": {}}]}, tool("12:00")],
    [
        user("Values"),
        calling(
            call(
                "add_numbers",
                {
                    "x": 1.0,
                    "y": None,
                    "s": "q\"uo'te",
                    "b": True,
                    "l": [],
                    "d": {},
                    "n": {"k": [1, {"z": False}]},
                    "ü": "<é>",
                },
                "abcdefgh1",
            )
        ),
    ],
    [user("Orphan"), tool("nobody asked", tool_call_id="x", name="now"), user("?")],
    [tool("first")],
    [
        user("Parts"),
        calling(call("now", {}, "abcdefgh1")),
        tool([{"type": "text", "text": "in parts"}], tool_call_id="abcdefgh1", name="now"),
    ],
    [
        user("Reasoned"),
        calling(call("now", {}, "abcdefgh1"), content="", reasoning_content="I need the time", thinking="time?"),
        tool({"time": "12:00"}, tool_call_id="abcdefgh1", name="now"),
        assistant("Noon", reasoning_content="easy"),
    ],
    [user("Short id"), calling(call("now", {}, "1")), tool("x", tool_call_id="1", name="now")],
    [user("Empty calls"), {"role": "assistant", "content": "none", "tool_calls": []}, user("ok")],
    [user("None calls"), {"role": "assistant", "content": "none", "tool_calls": None}, user("ok")],
    [user("x"), {"role": "ipython", "content": {"out": 1}}, user("y")],
    [
        user("Twice"),
        calling(call("now", {}, "abcdefgh1")),
        tool("1", tool_call_id="abcdefgh1", name="now"),
        calling(call("now", {}, "abcdefgh2")),
        tool("2", tool_call_id="abcdefgh2", name="now"),
        assistant("done"),
        user("again"),
        calling(call("add_numbers", {"x": 1, "y": 2}, "abcdefgh3"), content="<think>t</think>c"),
    ],
]

TOKENS = {"bos_token": "<s>", "eos_token": "</s>", "pad_token": "<pad>", "unk_token": "<unk>"}

EXTRA = [
    {},
    {"enable_thinking": False},
    {"enable_thinking": True, "thinking": True, "reasoning_effort": "high"},
    {"reasoning_effort": "low", "model_identity": "You are rlx.", "builtin_tools": ["browser", "python"]},
    {"documents": [{"title": "One", "text": "First text"}, {"title": "Zwei", "contents": "Zweiter", "doc_id": 7}]},
    {
        "date_string": "26 Jul 2024",
        "tools_in_user_message": False,
        "custom_tools": [WEATHER],
        "controls": {"length": "short"},
    },
    {
        "thinking_budget": 512,
        "clear_thinking": False,
        "xml_tools": [CLOCK],
        "python_tools": [SUM],
        "preserve_thinking": True,
    },
    {"add_vision_id": True, "is_first": True, "citations": True, "date": "2025-01-01", "functions": [CLOCK]},
]


def variable_sets(quick=False):
    """All sets of variables: every conversation with and without tools and prompt, the extras on some."""
    out = []
    tool_sets = [None, [WEATHER, CLOCK, SUM], []]
    for messages in (PLAIN[1], TOOLS[0]):
        out.append(dict(TOKENS, messages=messages, tools=[LISTED], add_generation_prompt=True, documents=None))
    for i, messages in enumerate(PLAIN + TOOLS):
        for tools, prompt in itertools.product(tool_sets[: 2 if i % 3 else 3], (False, True)):
            out.append(dict(TOKENS, messages=messages, tools=tools, add_generation_prompt=prompt, documents=None))
        for extra in EXTRA[1:] if not quick else EXTRA[1:3]:
            base = dict(TOKENS, messages=messages, tools=[WEATHER] if i % 2 else None, add_generation_prompt=True)
            out.append(dict(base, documents=None) | extra)
    bare = {"messages": [user("Hello"), assistant("Hi"), user("?")]}
    out += [bare, dict(bare, tools=[CLOCK]), dict(bare, add_generation_prompt=True, bos_token=""), {}]
    return copy.deepcopy(out)
