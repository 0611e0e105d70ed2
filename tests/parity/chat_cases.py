"""Templates of our own writing, one or more for each thing that templates can do. chat_templates.py --update-cases
writes them with what jinja2 makes of them to tests/unit/text/chat_template_cases.jsonl, for a test without Python."""

import json
import os

import chat_programs

CHATML = """{%- if tools %}
    {{- '<|im_start|>system\\n' }}
    {%- if messages[0].role == 'system' %}
        {{- messages[0].content + '\\n\\n' }}
    {%- endif %}
    {{- "# Tools\\n" }}
    {%- for tool in tools %}
        {{- "\\n" }}
        {{- tool | tojson }}
    {%- endfor %}
    {{- "\\n<|im_end|>\\n" }}
{%- endif %}
{%- set ns = namespace(last=-1, multi_step=true) %}
{%- for message in messages[::-1] %}
    {%- set index = (messages|length - 1) - loop.index0 %}
    {%- if ns.multi_step and message.role == "user" and message.content is string
           and not message.content.startswith('<r>') %}
        {%- set ns.multi_step = false %}
        {%- set ns.last = index %}
    {%- endif %}
{%- endfor %}
{%- for message in messages %}
    {%- if message.role == "user" or (message.role == "system" and not (loop.first and tools)) %}
        {{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>' + '\\n' }}
    {%- elif message.role == "assistant" %}
        {%- set content = message.content or '' %}
        {%- if '</think>' in content %}
            {%- set content = content.split('</think>')[-1].lstrip('\\n') %}
        {%- endif %}
        {{- '<|im_start|>' + message.role + '\\n' + content }}
        {%- for call in message.tool_calls or [] %}
            {{- '\\n<tool_call>' ~ call.function.name ~ (call.function.arguments | tojson) ~ '</tool_call>' }}
        {%- endfor %}
        {{- '<|im_end|>\\n' }}
    {%- elif message.role == "tool" %}
        {%- if loop.first or loop.previtem.role != "tool" %}{{- '<|im_start|>user' }}{%- endif %}
        {{- '\\n<r>' + message.content + '</r>' }}
        {%- if loop.last or loop.nextitem.role != "tool" %}{{- '<|im_end|>\\n' }}{%- endif %}
    {%- else %}
        {{- raise_exception('Unknown role ' ~ message.role ~ ' at turn ' ~ loop.index) }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
{%- endif %}
"""

ALTERNATING = """{{ bos_token }}{% for message in messages %}
{% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}
{{ raise_exception('Roles must alternate user/assistant/user/assistant/...') }}
{% endif %}
{% if message['role'] == 'user' %}
[INST] {{ message['content'] | trim }} [/INST]{% else %}
{% generation %} {{ message['content'] | trim }}{{ eos_token }}{% endgeneration %}
{% endif %}
{% endfor %}
"""

USER, ANSWER = {"role": "user", "content": " Hi <there> "}, {
    "role": "assistant",
    "content": "<think>\nx</think>\n\nYes",
}
CALLING = {
    "role": "assistant",
    "content": None,
    "tool_calls": [{"function": {"name": "f", "arguments": {"ü": [1, 2.5, None, True]}}}],
}
TOOL = {"role": "tool", "content": "22 °C"}
SCHEMA = {"type": "function", "function": {"name": "f", "description": 'Says "x"', "parameters": {}}}

CONVERSATIONS = [
    {"messages": []},
    {"messages": [USER]},
    {"messages": [{"role": "system", "content": "S"}, USER, ANSWER, USER], "add_generation_prompt": True},
    {"messages": [{"role": "system", "content": "S"}, USER, CALLING, TOOL, TOOL, ANSWER], "tools": [SCHEMA]},
    {"messages": [USER, {"role": "narrator", "content": "x"}]},
    {"messages": [USER, USER], "bos_token": "<s>", "eos_token": "</s>"},
    {"messages": [USER, ANSWER, USER], "bos_token": "<s>", "eos_token": "</s>"},
    {"messages": [USER, {"role": "user", "content": None}]},
    {},
]

# Over the variables of chat_programs.
with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "chat_cases.json"), encoding="utf-8") as file:
    SMALL = json.load(file)


def cases():
    """Pairs of a template and its variables."""
    out = [(CHATML, v) for v in CONVERSATIONS] + [(ALTERNATING, v) for v in CONVERSATIONS]
    out += [(template, chat_programs.VARIABLES) for template in SMALL]
    programs = (chat_programs.program(seed) for seed in range(400))
    out += [(p, chat_programs.VARIABLES) for p in programs if len(p) < 400][:200]
    return out
