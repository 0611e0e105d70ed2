"""Graphs for the tests of pages, as text."""


def tall(nodes):
    """A chain of small layers with skips over ten of them: about `nodes` nodes."""
    lines = ['  %0 = input() {name = "x"} : [4, 8] f32']
    last, skips = 0, []

    def add(text, label=""):
        lines.append(f"  %{len(lines)} = {text}{label}")
        return len(lines) - 1

    layer = 0
    while len(lines) < nodes - 8:
        label = f' @"layer{layer}"'
        w = add(f'param() {{name = "layer{layer}.weight"}} : [8, 8] f32')
        b = add(f'param() {{name = "layer{layer}.bias"}} : [8] f32')
        product = add(f"matmul(%{last}, %{w}) : [4, 8] f32", label)
        total = add(f"add(%{product}, %{b}) : [4, 8] f32", label)
        last = add(f"add(%{last}, %{add(f'gelu(%{total}) : [4, 8] f32', label)}) : [4, 8] f32", label)
        skips.append(last)
        if layer % 10 == 9:
            last = add(f"add(%{last}, %{skips[layer - 9]}) : [4, 8] f32", label)
        layer += 1
    return "graph @tall {\n" + "\n".join(lines) + f"\n  return %{last}\n}}\n"


def wide(nodes):
    """Many short branches of one input."""
    lines = ['  %0 = input() {name = "x"} : [4, 8] f32']
    ends = []
    while len(lines) < nodes - 3:
        lines.append(f'  %{len(lines)} = param() {{name = "scale{len(ends)}"}} : [8] f32')
        lines.append(f"  %{len(lines)} = mul(%0, %{len(lines) - 1}) : [4, 8] f32")
        lines.append(f"  %{len(lines)} = exp(%{len(lines) - 1}) : [4, 8] f32")
        ends.append(len(lines) - 1)
    joined = ", ".join(f"%{e}" for e in ends)
    lines.append(f"  %{len(lines)} = concat({joined}) {{axis = 0}} : [{4 * len(ends)}, 8] f32")
    return "graph @wide {\n" + "\n".join(lines) + f"\n  return %{len(lines) - 1}\n}}\n"


def hostile():
    """Labels and names that look like markup, quotes, line separators; a sort that GPUs refuse; two loops, a branch."""
    label = "a</script><script>window.pwned = 1</script><img src=x onerror=alert(1)>"
    odd = "line\u2028para\u2029 \\\"quoted\\\" 'single' & <b> \U0001f600"
    return f"""graph @hostile {{
  %0 = input() {{name = "x<script>"}} : [64, 64] f32
  %1 = param() {{name = "{odd}"}} : [64, 64] f32
  %2 = matmul(%0, %1) : [64, 64] f32 @"{label}"
  %3 = relu(%2) : [64, 64] f32 @"{odd}"
  %4 = sort(%3) {{axis = 1}} : [64, 64] f32 @"__proto__"
  %5 = exp(%4) : [64, 64] f32 @"constructor"
  %6 = state() {{name = "kv</title>", init = [64] f32 {{{", ".join(["0"] * 64)}}}}} : [64] f32
  %7:2 = scan(%6, %5) {{carries = 1, length = [64], body = graph @body {{
      %0 = input() {{name = "carry"}} : [64] f32
      %1 = input() {{name = "row"}} : [64] f32
      %2 = add(%0, %1) : [64] f32 @"in the loop"
      %3 = tanh(%2) : [64] f32
      return %2, %3
    }}}} : [64] f32, [64, 64] f32
  %8 = matmul(%7#1, %1) : [64, 64] f32
  return %8, %3
  set_state "kv</title>" %7
}}
"""
