"""Templates of our own writing, one or more for each thing that templates can do. chat_templates.py --update-cases
writes them with what jinja2 makes of them to tests/unit/text/chat_template_cases.jsonl, for a test without Python."""

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
    {%- if ns.multi_step and message.role == "user" and message.content is string and not message.content.startswith('<r>') %}
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

USER, ANSWER = {"role": "user", "content": " Hi <there> "}, {"role": "assistant", "content": "<think>\nx</think>\n\nYes"}
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
SMALL = [
    # whitespace
    "a\n{% if b %}\n  x\n  {% endif %}\ny\n",
    "a  {%- if b -%}  x  {%- endif -%}  y",
    "  {% if b %} x {% endif %}\n  {%+ if b %}y{% endif +%}\n z",
    "a {# note #} b\n  {# alone #}\nc {#- eats -#} d",
    "{{ 'x' }}\n{{- 'y' -}}\n z\n\n",
    "{% raw %}{{ x }} {% if %}{% endraw %}|{%- raw -%}  {# #}  {%- endraw -%}  !",
    "line\r\nends\rof\n\rall kinds\r\n",
    # literals and operators
    "{{ 1 }} {{ 1.0 }} {{ 1e16 }} {{ 1e15 }} {{ 1e-5 }} {{ 0.0001 }} {{ 1_000 }} {{ 0x1F }} {{ 0b11 }} {{ 0o17 }} {{ -0.0 }}",
    "{{ 'a' 'b' }} {{ \"\\\"q\\\"\\n\" }} {{ '\\x41\\u00e9\\U0001F600\\101\\q' }}",
    "{{ [1, 'x', none, true, 2.5, 'it\\'s', \"q\"] }} {{ (1,) }} {{ () }} {{ {'a': 1, 2: [3]} }} {{ 'a\\nb\\t\\\\' | list }}",
    "{{ 7 // 2 }} {{ -7 // 2 }} {{ 7 % -3 }} {{ -7 % 3 }} {{ 7 / 2 }} {{ 2 ** 10 }} {{ 2 ** -1 }} {{ -2 ** 2 }} {{ 7.5 // 2 }} {{ -7.5 % 2 }}",
    "{{ 1 + 2 ~ 3 * 4 ~ 5 }} {{ 1 ~ 2 + 3 | string | length ~ '!' }} {{ 'a' * 3 }} {{ [1] * 2 + [3] }}",
    "{{ 1 < 2 < 3 }} {{ 1 < 3 < 2 }} {{ 1 == 1.0 == true }} {{ 'a' < 'b' }} {{ [1, 2] < [1, 3] }} {{ not 1 == 2 }}",
    "{{ 3 in l }} {{ 'x' not in s }} {{ 'ell' in s }} {{ 'a' in d }} {{ none in m }} {{ u in [u] }}",
    "{{ n or 'or' }} {{ s and 5 }} {{ 'yes' if b else 'no' }} {{ 'only' if c }} {{ ('x' if c) is defined }}",
    "{{ s[0] }}{{ s[-1] }}{{ s[1:4] }}{{ s[::-1] }}{{ t[5:9] }}{{ l[1:] }}{{ l[::2] }}{{ l[5:] }}{{ s[n:3] }}{{ ls[-2:] }}",
    "{{ d.a }} {{ d['C'][0] }} {{ d.keys() | list }} {{ d['keys'] }} {{ dd.x.y.z[1].w }} {{ ld.0.role }} {{ l.1 }}",
    "{{ u }}|{{ d.zz }}|{{ u is defined }}|{{ u | default('x') }}|{{ n | default('x') }}|{{ n | default('x', true) }}|{{ u | length }}",
    # statements
    "{% set x = 1 %}{% for y in l %}{% set x = y %}{{ x }}{% endfor %}{{ x }}",
    "{% set ns = namespace(c=0, t='') %}{% for y in l %}{% set ns.c = ns.c + y %}{% set ns.t = ns.t ~ y %}{% endfor %}{{ ns.c }} {{ ns.t }} {{ ns }}",
    "{% set a1, a2 = 1, [2, 3] %}{{ a1 }}{{ a2 }}{% set (b1, b2), b3 = (4, 5), 6 %}{{ b1 }}{{ b2 }}{{ b3 }}",
    "{% set x %}  in {{ i }} {% endset %}[{{ x }}]{% set y | upper | trim %} shout {% endset %}[{{ y }}]",
    "{% for k, v in d.items() %}{{ k }}={{ v }};{% endfor %}{% for x in o %}{% else %}none{% endfor %}",
    "{% for x in ls if x != 'fig' %}{{ loop.index }}/{{ loop.length }}:{{ x }}{{ '' if loop.last else ', ' }}{% endfor %}",
    "{% for x in l %}{{ loop.first }}{{ loop.revindex }}{{ loop.previtem | default('-') }}{{ loop.nextitem | default('-') }}{{ loop.cycle('a', 'b') }}{{ loop.changed(x) }} {% endfor %}",
    "{% for x in l %}{% if loop.index == 2 %}{% continue %}{% endif %}{% if loop.index == 4 %}{% break %}{% endif %}{{ x }}{% endfor %}",
    "{% for x in [1] %}{% break %}{% else %}jinja2 comes here{% endfor %}",
    "{% for x in [1, [2, [3]]] recursive %}{{ loop.depth }}:{% if x is iterable %}({{ loop(x) }}){% else %}{{ x }}{% endif %} {% endfor %}",
    "{% for x in l %}{% for y in ls %}{{ loop.index }}{% endfor %}{{ loop.index }} {% endfor %}",
    "{% if n %}1{% elif z %}2{% elif 'x' %}3{% else %}4{% endif %}{% if u %}5{% endif %}",
    "{% macro m(a, b='B', c=a) %}{{ a }}{{ b }}{{ c }}{{ varargs }}{{ kwargs }}{% endmacro %}{{ m(1) }} {{ m(1, c=3) }} {{ m(1, 2, 3, 4, z=5) }} {{ m() }}",
    "{% macro m(x) %}<{{ caller(x, 2) }}>{% endmacro %}{% call(p, q) m('X') %}{{ p }}{{ q }}{{ i }}{% endcall %}",
    "{% macro fact(x) %}{{ x * fact(x - 1) | int if x > 1 else 1 }}{% endmacro %}{{ fact(5) }}",
    "{% set x = 'outer' %}{% macro m() %}{{ x }}{% set x = 'inner' %}{{ x }}{% endmacro %}{{ m() }}{{ x }}{% set x = 'later' %}{{ m() }}",
    "{% macro m() %}{{ i }}{% endmacro %}{{ m() }}{% set i = 'set after' %}{{ m() }}",
    "{% with x = 1, y = i %}{{ x }}{{ y }}{% endwith %}{{ x }}{% filter upper | trim %} shout {{ s }} {% endfilter %}",
    "{% print 1, 'x', [2] %}{% generation %}{{ s }}{% endgeneration %}",
    "{% if b %}{% set x = 1 %}{% endif %}{{ x }}{% if c %}{% set s = 2 %}{% endif %}{{ s }}",
    # strings
    "{{ t.strip() }}|{{ 'xxaxx'.strip('x') }}|{{ ' a '.lstrip() }}|{{ ' a '.rstrip() }}|{{ '<<a>'.lstrip('<') }}",
    "{{ w.split() }}{{ w.split(' ') }}{{ w.split(' ', 1) }}{{ w.rsplit(' ', 1) }}{{ w.rsplit(None, 1) }}{{ ''.split() }}{{ ''.split(',') }}",
    "{{ w.splitlines() }}{{ 'a\\r\\nb\\u2028c'.splitlines(true) }}{{ 'a=b=c'.partition('=') }}{{ 'a=b=c'.rpartition('=') }}",
    "{{ s.upper() }} {{ t.lower() }} {{ t.upper() }} {{ t.title() }} {{ 'ΑΣ ΑΣΑ'.lower() }} {{ s.swapcase() }} {{ 'ß'.capitalize() }} {{ 'Straße'.casefold() }}",
    "{{ s.replace('l', 'L', 1) }} {{ s.find('o') }} {{ s.rfind('o') }} {{ s.count('l') }} {{ s.index('W') }} {{ t.find('wörld') }} {{ 'aaa'.replace('', '-') }}",
    "{{ s.startswith('He') }} {{ s.startswith(('x', 'H')) }} {{ s.endswith('d', 3) }} {{ '12'.isdigit() }} {{ 'ab'.isalpha() }} {{ 'Ab'.istitle() }} {{ ' '.isspace() }}",
    "{{ 'a'.center(5, '*') }}{{ 'a'.ljust(3) }}|{{ 'a'.rjust(3) }}{{ '-5'.zfill(4) }}{{ 'a\\tb'.expandtabs(4) }}{{ 'prefix'.removeprefix('pre') }}{{ ', '.join(ls) }}",
    "{{ '{} {1}'.format(1, 2) }}",
    "{{ '{0}{1!r:>6}{x:.2f}{y[0]}{d.a}'.format(1, 'q', x=2.345, y=[7], d=d) }} {{ '{:>{}}|{:^7}|{:,}|{:08.3f}|{:x}|{:+d}|{{}}'.format('a', 4, 'b', 1234567, 3.14159, 255, 5) }}",
    "{{ '%s %r %5d|%-5d|%05.1f|%x %%' % ('a', 'b', 42, 7, 2.55, 255) }} {{ '%(a)s %(b)03d' % d }} {{ '%s' % l | string }} {{ '%.3s|%c' % ('abcdef', 65) }}",
    # filters
    "{{ ls | sort }} {{ ls | sort(case_sensitive=true, reverse=true) }} {{ ld | sort(attribute='n') | map(attribute='n') | list }}",
    "{{ ls | unique | list }} {{ l | reverse | list }} {{ s | reverse }} {{ l | first }}{{ l | last }}{{ l | sum }}{{ l | min }}{{ l | max }} {{ e | first }}|{{ e | max }}",
    "{{ ld | map(attribute='role') | join(', ') }} {{ ld | selectattr('role', 'equalto', 'user') | list | length }} {{ ld | rejectattr('content') | list | length }}",
    "{{ l | select('odd') | list }} {{ m | reject('none') | list }} {{ m | select | list }} {{ ls | map('upper') | list }} {{ ld | map(attribute='x.y', default=0) | list }}",
    "{{ d | dictsort }} {{ d | dictsort(true) }} {{ d | items | list }} {{ {'a': 2, 'b': 1} | dictsort(by='value', reverse=true) }}",
    "{% for g, items in ld | groupby('role') %}{{ g }}:{{ items | length }} {% endfor %}{{ (ld | groupby('n')).0.grouper }}",
    "{{ l | batch(3, 'x') | list }} {{ l | slice(3) | list }} {{ l | join('-') }} {{ l | list | length }} {{ 'abc' | list }} {{ range(5, 0, -2) | list }} {{ range(3) }}",
    "{{ w | indent }}|{{ w | indent(2, true) }}|{{ 'a\\n\\nb' | indent('> ', blank=true) }}|{{ s | truncate(8) }}|{{ s | truncate(6, true, '') }}|{{ w | wordcount }}",
    "{{ '42' | int }} {{ 'x' | int(-1) }} {{ '0x1f' | int(base=16) }} {{ ' 3.9 ' | int }} {{ '1.5' | float }} {{ 'x' | float }} {{ 2.5 | round }} {{ 3.14159 | round(2) }} {{ 2.1 | round(0, 'ceil') }} {{ 5 | round }} {{ -3 | abs }}",
    "{{ m | tojson }} {{ dd | tojson(indent=2) }} {{ t | tojson }} {{ t | tojson(ensure_ascii=true) }} {{ d | tojson(sort_keys=true, separators=(',', ':')) }} {{ '\\x00\\x7f\\u2028</' | tojson }}",
    "{{ h | e }} {{ h | safe }} {{ h | e | e }} {{ h | forceescape }} {{ ('<' | safe) + '<' }} {{ '<' + ('&' | e) }} {{ ('<%s>' | safe) % h }} {{ (h | e).upper() }} {{ ('<' | safe) ~ '<' }}",
    "{{ s | title }} {{ 'a-b (c) d_e' | title }} {{ s | upper | lower | capitalize }} {{ 'x' | center(5) }}| {{ s | replace('l', 1) }} {{ 'a b&c/d' | urlencode }} {{ 1500 | filesizeformat }} {{ i | string + 's' }}",
    "{{ l | map('string') | join }} {{ ls | map('length') | sum }} {{ ls | map('replace', 'f', 'F') | list }} {{ ['b', 'A'] | sort | first }} {{ s | attr('upper') is callable }}",
    # tests and functions
    "{{ i is odd }}{{ i is even }}{{ i is divisibleby 7 }}{{ i is number }}{{ f is float }}{{ i is integer }}{{ b is boolean }}{{ b is true }}{{ s is string }}{{ l is sequence }}{{ d is mapping }}{{ d is iterable }}{{ n is none }}{{ u is undefined }}",
    "{{ i is eq 7 }}{{ i is ne(7) }}{{ i is gt 3 }}{{ i is in [7] }}{{ i is not in [7] }}{{ 'a' is lower }}{{ 'A' is upper }}{{ b is sameas true }}{{ 'upper' is filter }}{{ 'odd' is test }}{{ (h | e) is escaped }}{{ true is integer }}{{ range is callable }}",
    "{{ dict(a=1, b=2) }} {{ dict([(1, 2)], c=3) }} {% set c1 = cycler('a', 'b') %}{{ c1.next() }}{{ c1.next() }}{{ c1.current }}{{ c1.next() }} {% set j1 = joiner('|') %}{{ j1() }}x{{ j1() }}y",
    "{{ strftime_now('%d %b %Y') }} {{ namespace(a=1).a }} {{ namespace({'b': 2}).b }}",
    # faults
    "{{ u.x }}",
    "{{ d.zz.y }}",
    "{{ d['zz']['y'] }}",
    "{{ l[9].x }}",
    "{{ 'a' + 1 }}",
    "{{ 1 + 'a' }}",
    "{{ s + none }}",
    "{{ [1] + (2,) }}",
    "{{ u + 'a' }}",
    "{{ 1 < 'a' }}",
    "{{ 1 / 0 }}",
    "{{ 5 in 5 }}",
    "{{ 1 in 'a' }}",
    "{{ u() }}",
    "{{ s() }}",
    "{{ u[1:] }}",
    "{{ i[1:] }}",
    "{{ l.append(4) }}",
    "{{ d.update({}) }}",
    "{{ s.__class__ }}{{ s.__class__.x }}",
    "{{ {[]: 1} }}",
    "{{ x | tojson }}",
    "{{ [range] | tojson }}",
    "{% for x in 5 %}{% endfor %}",
    "{% for x, y in [1] %}{% endfor %}",
    "{% for x, y in [[1]] %}{% endfor %}",
    "{% set s.x = 1 %}",
    "{{ raise_exception('No ' ~ s) }}",
    "{{ l | map('nosuch') | list }}",
    "{{ l | nosuch }}",
    "{% if c %}{{ l | nosuch }}{% endif %}ok",
    "{% if b %}{{ l | nosuch }}{% endif %}",
    "{{ l is nosuch }}",
    "{{ range(200000) }}",
    "{{ '%d' % 'a' }}",
    "{{ '%s %s' % 1 }}",
    "{{ '{' .format() }}",
    "{{ ','.join([1]) }}",
    "{{ ''.split('') }}",
    "{{ 'a'.index('b') }}",
    "{% macro m(a) %}{% endmacro %}{{ m(1, 2) }}",
    "{% macro m(a) %}{% endmacro %}{{ m(b=1) }}",
    "{% macro m(a) %}{{ a.x }}{% endmacro %}{{ m() }}",
    "{{ s | replace('a') }}",
    "{{ s | upper(1) }}",
    "{{ loop.index }}",
    # faults of syntax
    "{% if b %}x",
    "{% endif %}",
    "a\n{% for x in l %}{% endif %}",
    "{{ 1 + }}",
    "{{ a b }}",
    "{{ (1 }}",
    "{{ 'x }}",
    "{{ x ]",
    "{# never ends",
    "{% raw %} never ends",
    "{% set 1 = 2 %}",
    "{% set true = 2 %}",
    "{% set %}",
    "{% do x %}",
    "{% macro m(a=1, b) %}{% endmacro %}",
    "{% macro m(a, a) %}{% endmacro %}",
    "{% break %}",
    "{% for loop in l %}{% endfor %}",
    "{{ f(**a, *b) }}",
    "{{ f(a=1, a=2) }}",
    "{{ x is a is b }}",
    "{% call x %}{% endcall %}",
    "{{ $ }}",
    "{{ x.'y' }}",
    "{{ }}",
    "{% %}",
    "{{ '\\x4' }}",
]


def cases():
    """Pairs of a template and its variables."""
    out = [(CHATML, v) for v in CONVERSATIONS] + [(ALTERNATING, v) for v in CONVERSATIONS]
    out += [(template, chat_programs.VARIABLES) for template in SMALL]
    programs = (chat_programs.program(seed) for seed in range(400))
    out += [(p, chat_programs.VARIABLES) for p in programs if len(p) < 400][:200]
    return out
