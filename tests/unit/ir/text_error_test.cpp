// Every error message of the text parser, compared exactly.
#include <doctest/doctest.h>

#include "rlx/ir/text.h"

using namespace rlx;

namespace {

// The message of parsing `text`, or "no error".
std::string error_of(const std::string& text) {
  try {
    parse_text(text, "m.rlx");
  } catch (const Error& e) {
    CHECK(e.code() == ErrorCode::BadFile);
    return e.what();
  }
  return "no error";
}

// The message for one line inside a graph that has %0: [2, 3] f32.
std::string error_in(const std::string& line) {
  return error_of("graph @g {\n  %0 = input() {name = \"x\"} : [2, 3] f32\n  " + line + "\n}\n");
}

void expect(const std::string& line, const std::string& message, int column, const std::string& hint = {}) {
  std::string expected = concat_text("bad file: ", message, "\n  m.rlx:3:", column, "\n      ", line, "\n    ",
                                     std::string(static_cast<std::size_t>(column) - 1, ' '), "^");
  if (!hint.empty()) expected += "\n  hint: " + hint;
  CHECK(error_in(line) == expected);
}

}  // namespace

TEST_CASE("parser errors: position, what was expected, what was found") {
  expect("%1 = gelu %0 : [2, 3] f32", "expected '(' before the operands, got '%'", 13);
  expect("%1 = gelu(%0 : [2, 3] f32", "expected ')' after the operands, got ':'", 16);
  expect("%1 = (%0) : [2, 3] f32", "expected an op name, got '('", 8);
  expect("%1 gelu(%0) : [2, 3] f32", "expected '=' after the node id, got 'gelu'", 6);
  expect("% = gelu(%0) : [2, 3] f32", "expected a node id after '%', got ' '", 4);
  expect("%1 = gelu(0) : [2, 3] f32", "expected a value such as %3, got '0'", 13);
  expect("result %0", "expected a node (%0 = ...), symbol, return, set_symbol, set_state or '}', got 'result'", 3);
}

TEST_CASE("parser errors: values") {
  const std::string before = "a node may use only nodes that are written before it, in the same graph";
  expect("%1 = gelu(%7) : [2, 3] f32", "%7 is not defined above this line", 13, before);
  expect("%1 = gelu(%1) : [2, 3] f32", "%1 is not defined above this line", 13, before);
  expect("return %2", "%2 is not defined above this line", 10, before);
  expect("%0 = gelu(%0) : [2, 3] f32", "%0 is defined twice", 3);
  expect("%1 = gelu(%0#1) : [2, 3] f32", "%0 has 1 result, there is no #1", 16);
  expect("%1 = gelu(%0#99999999999) : [2, 3] f32", "a result index 99999999999 is out of range", 16);
}

TEST_CASE("parser errors: ops and attributes get the closest name") {
  expect("%1 = gelo(%0) : [2, 3] f32", "there is no op 'gelo'", 8, "did you mean 'gelu'?");
  expect("%1 = " + std::string(60, 'q') + "(%0) : [2, 3] f32", "there is no op '" + std::string(40, 'q') + "'", 8,
         "`rlx ops` lists all ops");
  expect("%1 = softmax(%0) {axes = 1} : [2, 3] f32", "softmax has no attribute 'axes'", 21, "did you mean 'axis'?");
  expect("%1 = gelu(%0) {fn = relu} : [2, 3] f32", "gelu has no attribute 'fn'", 18, "the attributes are alpha, beta");
  expect("%1 = stop_gradient(%0) {fn = relu} : [2, 3] f32", "stop_gradient has no attribute 'fn'", 27,
         "stop_gradient has no attributes");
  expect("%1 = softmax(%0) {axis = 1, axis = 1} : [2, 3] f32", "attribute 'axis' is given twice", 31);
  expect("%1 = softmax(%0) {axis = one} : [2, 3] f32", "expected an integer, got 'one'", 28);
  expect("%1 = softmax(%0) {axis = 99999999999999999999} : [2, 3] f32",
         "an integer 99999999999999999999 is out of range", 28);
  expect("%1 = softmax(%0) {axis 1} : [2, 3] f32", "expected '=' after attribute axis, got '1'", 26);
  expect("%1 = reduce_sum(%0) {axes = [1], keep_dims = yes} : [2, 1] f32", "expected true or false, got 'yes'", 48);
}

TEST_CASE("parser errors: types are checked against the shape rules") {
  expect("%1 = gelu(%0) : [2, 4] f32", "gelu returns [2, 3] f32, but the text says [2, 4] f32", 19);
  expect("%1 = gelu(%0) : [2, 3] f16", "gelu returns [2, 3] f32, but the text says [2, 3] f16", 19);
  expect("%1 = gelu(%0, %0) : [2, 3] f32", "gelu: got 2 operands, takes (x)", 8);
  expect("%1 = matmul(%0, %0) : [2, 3] f32", "matmul: lhs [2, 3] f32 has 3 columns, rhs [2, 3] f32 has 2 rows", 8);
  expect("%1 = softmax(%0) {axis = 2} : [2, 3] f32", "softmax: axis 2 is outside [2, 3] f32", 8);
  expect("%1 = top_k(%0) {k = 2} : [2, 2] f32, [2, 2] i32", "%1 has 1 result but 2 types", 28, "write %1:2 = ...");
  expect("%1:0 = gelu(%0) : [2, 3] f32", "a node has 1 to 64 results, not 0", 6);
  expect("%1 = gelu(%0) : [2, 3] float", "expected a dtype, got 'float'", 26, "for example f32, bf16, i64 or bool");
  expect("%1 = gelu(%0) : [2, 3] bf61", "expected a dtype, got 'bf61'", 26, "did you mean 'bf16'?");
  const std::string dim_hint = "write an integer, a symbol, or an expression such as 2*seq + 1 or floordiv(seq, 16)";
  expect("%1 = gelu(%0) : [2, +] f32", "expected a dimension, got '+'", 23, dim_hint);
  expect("%1 = gelu(%0) : [2, 99999999999999999999] f32", "the dimension '99999999999999999999' is too large", 23,
         "a dimension must be below 2^63");
  expect("%1 = reshape(%0) : [4611686018427387904, 4] f32",
         "reshape: dimension product 4611686018427387904 * 4 overflows 64 bits", 8);
}

TEST_CASE("parser errors: constants") {
  expect("%1 = constant() {value = [2] f32 {1}} : [2] f32",
         "expected ',' and 1 more of the 2 elements of [2] f32, got '}'", 38);
  expect("%1 = constant() {value = [1] f32 {1, 2}} : [1] f32", "expected '}' after the 1 elements of [1] f32, got ','",
         38);
  expect("%1 = constant() {value = [1] i8 {128}} : [1] i8", "an integer of this dtype 128 is out of range", 36);
  expect("%1 = constant() {value = [1] u4 {16}} : [1] u4", "16 is outside u4 [0, 15]", 36);
  expect("%1 = constant() {value = [1] f32 {1e99}} : [1] f32", "a number 1e99 is out of range", 37);
  expect("%1 = constant() {value = [1] f32 0x00} : [1] f32", "expected 4 bytes, got 1", 36);
  expect("%1 = constant() {value = [1] f32 0x0g} : [1] f32", "expected pairs of hexadecimal digits, got '0g'", 38);
  expect("%1 = constant() {value = [n] f32 {1}} : [n] f32", "a tensor needs integer dimensions, got [n] f32", 28);
  expect("%1 = constant() {value = [999999999] f32 {1}} : [1] f32",
         "the text ends before the 999999999 elements of [999999999] f32", 28);
  expect("%1 = constant() : [1] f32", "constant: needs a value", 8);
  const std::string three = "%1 = reduce_sum(%0) {axes = [0]} : [3] f32\n  ";
  for (auto [written, read] :
       {std::pair("inf", "inf"), std::pair("-inf", "-inf"), std::pair("0x7ff8000000000001", "nan")})
    CHECK(error_in(three + "%2 = layer_norm(%0, gamma=%1, beta=%1) {axes = [1], eps = " + written + "} : [2, 3] f32")
              .find(concat_text("layer_norm: eps must be a finite number >= 0, got ", read)) != std::string::npos);
  CHECK(error_in(three + "%2 = layer_norm(%0, gamma=%1, beta=%1) {axes = [1], eps = 0x7ff} : [2, 3] f32")
            .find("16 hexadecimal digits") != std::string::npos);
}

TEST_CASE("parser errors: graphs, strings, symbols, states") {
  CHECK(error_of("") == "bad file: expected 'graph', got the end of the text\n  m.rlx:1:1");
  CHECK(error_of("graph g {}") ==
        "bad file: expected '@' before the graph's name, got 'g'\n  m.rlx:1:7\n    graph g {}\n          ^");
  CHECK(error_of("graph @g {") ==
        "bad file: expected a node (%0 = ...), symbol, return, set_symbol, set_state or '}', got the end of the text"
        "\n  m.rlx:1:11\n    graph @g {\n              ^");
  CHECK(error_of("graph @g {} x") ==
        "bad file: expected the end of the text after the graph, got 'x'\n  m.rlx:1:13\n    graph @g {} x\n            "
        "    ^");
  CHECK(error_of(std::string("graph @g {\n\x01}")) ==
        "bad file: expected a node (%0 = ...), symbol, return, set_symbol, set_state or '}', got byte 0x01\n  "
        "m.rlx:2:1\n    "
        "\\x01}\n    ^");
  CHECK(error_of("graph @g {\r\n  %0 = \xff\x1b[0m\r\n}") ==
        "bad file: expected an op name, got byte 0xff\n  m.rlx:2:8\n      %0 = \\xff\\x1b[0m\n           ^");
  expect("%1 = input() {name = \"y} : [2] f32", "the string name has no closing quote", 24);
  expect("%1 = input() {name = \"\\q\"} : [2] f32", "unknown escape in a string", 25,
         "escapes are \\\" \\\\ \\n and \\x with two hexadecimal digits");
  expect("%1 = param() {name = \"x\"} : [2] f32", "the name 'x' is used by another leaf", 8,
         "give every input, param and state its own name");
  expect("symbol n [4, 2]", "symbol n needs 0 <= lower <= upper bound and a divisor of 1 or more", 10);
  expect("symbol n symbol n", "symbol n is declared twice", 19);
  expect("set_state \"kv\" %0", "graph 'g' has no state 'kv'", 3, "create it with g.state(name, init)");
  CHECK(error_in("return %0\n  return %0").find("a graph must have only one return line\n  m.rlx:4:3") !=
        std::string::npos);
  CHECK(error_in("return %0\n  %1 = gelu(%0) : [2, 3] f32").find("a node follows the return line\n  m.rlx:4:3") !=
        std::string::npos);
}

TEST_CASE("parser errors: hostile nesting, ranks and lines are refused, not followed") {
  std::string nested;
  for (int i = 0; i < 100; ++i) nested += "graph @g { %0 = elementwise_region() {body = ";
  CHECK(error_of(nested).find("sub-graphs are nested more than 64 deep") != std::string::npos);
  std::string dims = "1";
  for (int i = 0; i < 100000; ++i) dims += ", 1";
  CHECK(error_in("%1 = input() {name = \"y\"} : [" + dims + "] f32").find("more than 32 dimensions") !=
        std::string::npos);
  CHECK(error_in("%1 = input() {name = \"y\"} : [" + std::string(100000, '(') + "] f32").find("expected a dimension") !=
        std::string::npos);
  // Expanding products of sums of symbols would grow without bound.
  std::string product = "(n)";
  std::string big = "%1 = input() {name = \"y\"} : [";
  for (int i = 0; i < 16; ++i) big += concat_text(i ? ", " : "", "a", i, " + b", i);
  CHECK(error_in(big + "] f32\n  %2 = reshape(%1) : [1] f32").find("terms") != std::string::npos);
  // A long line is cut around the position.
  CHECK(error_in("%1 = constant() {value = [2] f32 {" + std::string(1000, ' ') + "x}} : [2] f32").size() < 400);
}
