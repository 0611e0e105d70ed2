// The JSON writer: nesting, escapes and numbers of both styles, and misuse.
#include "rlx/base/json_writer.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>

#include "rlx/formats/json.h"
#include "tests/support/error_text.h"

namespace rlx {

using test::contains;
using test::error_text;

TEST_CASE("json writer: nesting, escapes, numbers that read back") {
  JsonWriter w;
  w.begin_object().member("a", 1).key("b").begin_array().value(0.1f).value(0.1).value(true).null().end_array();
  w.member("s", "q\"\\\n\x01é").key("e").begin_object().end_object().end_object();
  CHECK(w.take() == "{\"a\":1,\"b\":[0.1,0.1,true,null],\"s\":\"q\\\"\\\\\\n\\u0001é\",\"e\":{}}");
  JsonWriter pretty(2);
  pretty.begin_array().value(1).begin_object().member("k", std::int64_t{-5}).end_object().end_array();
  CHECK(pretty.take() == "[\n  1,\n  {\n    \"k\": -5\n  }\n]");
  JsonWriter numbers;
  const double value = 1.0 / 3;
  numbers.begin_array().value(value).value(std::uint64_t{18446744073709551615u}).value(-0.0f).end_array();
  const JsonDocument back = JsonDocument::parse(numbers.take(), "t");
  CHECK(back.root().elements("")[0].as_number("") == value);
  CHECK(std::signbit(back.root().elements("")[2].as_number("")));
  CHECK(contains(error_text([&] { JsonWriter().value(std::nan("")); }), "JSON cannot hold"));
  CHECK(contains(error_text([&] { JsonWriter().value(std::numeric_limits<float>::infinity()); }), "JSON cannot hold"));
  CHECK(contains(error_text([] { JsonWriter(JsonStyle{.html_safe = true}).value(std::nan("")); }), "JSON cannot hold"));
  CHECK(JsonWriter().value("<&>\x7F\t\r\xE2\x80\xA8\xFF").take() == "\"<&>\x7F\\t\\r\xE2\x80\xA8\xFF\"");
}

TEST_CASE("json writer: parts of a text") {
  JsonWriter part;
  part.member("of", "x").member("step", std::size_t{3});
  JsonWriter w;
  w.begin_object().member("n", 1).key("args").begin_object().raw(part.take()).end_object();
  w.key("list").begin_array().raw("[]").raw("{}").value(2).end_array().end_object();
  CHECK(w.take() == R"({"n":1,"args":{"of":"x","step":3},"list":[[],{},2]})");
  w.begin_array().value(1);
  CHECK(w.flush() == "[1");
  w.value(2).end_array();
  CHECK(w.take() == ",2]");
}

TEST_CASE("json writer: unbalanced text is refused") {
  for (const JsonStyle& style : {JsonStyle(), kHtmlJson}) {
    const auto refused = [&](auto use) {
      return error_text([&] {
        JsonWriter w(style);
        use(w);
      });
    };
    CHECK(contains(refused([](JsonWriter& w) { (void)w.begin_array().take(); }), "still open"));
    CHECK(contains(refused([](JsonWriter& w) { (void)w.begin_object().key("k").take(); }), "still open"));
    CHECK(contains(refused([](JsonWriter& w) { w.begin_array().end_object(); }), "not open"));
    CHECK(contains(refused([](JsonWriter& w) { w.begin_array().end_array().end_array(); }), "not open"));
  }
}

TEST_CASE("json writer: text inside HTML") {
  const auto html = [](std::string_view text) { return JsonWriter(kHtmlJson).value(text).take(); };
  CHECK(html("") == R"("")");
  CHECK(html("</script><!-- & -->") == R"("\u003c/script\u003e\u003c!-- \u0026 --\u003e")");
  CHECK(html("\"\\\n\t\r\x01\x1F\x7F") == R"("\"\\\n\u0009\u000d\u0001\u001f\u007f")");
  CHECK(html(std::string_view("\0", 1)) == R"("\u0000")");
  CHECK(html("a\xE2\x80\xA8,\xE2\x80\xA9") == R"("a\u2028,\u2029")");
  for (const std::string kept : {"\xE2\x80\xA7", "\xE2\x80\xAA", "\xE2\x81\xA8", "é", "\xF0\x9F\x98\x80"})
    CHECK(html(kept) == "\"" + kept + "\"");
  const std::string replaced = "\xEF\xBF\xBD";
  CHECK(html("\xFF") == "\"" + replaced + "\"");
  CHECK(html("a\xC3z") == "\"a" + replaced + "z\"");
  CHECK(html("\xE2\x80\"") == "\"" + replaced + replaced + "\\\"\"");
  CHECK(html("\xED\xA0\x80") == "\"" + replaced + replaced + replaced + "\"");
  CHECK(JsonWriter(kHtmlJson).member("<k>", "<v>").take() == R"("\u003ck\u003e":"\u003cv\u003e")");
}

TEST_CASE("json writer: any bytes inside HTML become JSON that reads back, and nothing in it ends the script") {
  std::string all;
  for (int c = 0; c < 256; ++c) all += static_cast<char>(c);
  const std::string line_ends =
      "a\xE2\x80\xA8"
      "b\xE2\x80\xA9";
  for (const std::string& text : {all, line_ends, std::string("</script><!--"), std::string("\xED\xA0\x80"),
                                  std::string("\xF0\x9F\x98\x80 ok"), std::string("\xE2\x80")}) {
    const std::string json = JsonWriter(kHtmlJson).value(text).take();
    CHECK(json.find('<') == std::string::npos);
    CHECK(json.find("\xE2\x80\xA8") == std::string::npos);
    const JsonDocument document = JsonDocument::parse(json, "json");
    const std::string back(document.root().as_string("text"));
    if (text == line_ends || text == "</script><!--" || text == "\xF0\x9F\x98\x80 ok") CHECK(back == text);
    if (text == all) CHECK(back.substr(0, 128) == text.substr(0, 128));
    if (text == "\xE2\x80") CHECK(back == "\xEF\xBF\xBD\xEF\xBF\xBD");
  }
}

TEST_CASE("json writer: what would not be JSON is refused or left out") {
  JsonWriter w;
  w.begin_array().value(1).raw("").raw("2,3");
  CHECK(contains(error_text([&] { w.value(std::nan("")); }), "JSON cannot hold"));
  CHECK(w.value(4).end_array().take() == "[1,2,3,4]");
  w.begin_object().raw("").member("a", 0).raw(JsonWriter().take()).member("z", 3).end_object();
  CHECK(w.take() == R"({"a":0,"z":3})");
  CHECK(contains(error_text([] { JsonWriter().begin_object().key("a").raw(""); }), "a key"));
  CHECK(contains(error_text([] { JsonWriter().key("a").take(); }), "a key has no value"));
}

TEST_CASE("json writer: nesting and numbers of the style of reports") {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  JsonWriter nested(kHtmlJson);
  nested.begin_object().member("a", 1).key("b").begin_array().begin_array().end_array().value(std::uint32_t{2});
  nested.begin_object().end_object().null().end_array().member("c", false).end_object();
  CHECK(nested.take() == R"({"a":1,"b":[[],2,{},null],"c":false})");
  JsonWriter json(kHtmlJson);
  json.begin_array().value(1.5).value(-0.25).value(3.0).value(0.0).value(1e300).value(kInfinity).value(7).value(true);
  CHECK(json.end_array().take() == "[1.5,-0.25,3,0,1.000000e+300,0,7,true]");
  json.begin_array().value(std::nan("")).value(-kInfinity).value(std::numeric_limits<float>::quiet_NaN());
  json.value(0.1f).value(0.0625).value(0.0005).value(-0.0001).value(100.0).value(999999999999999.875).value(-1e15);
  CHECK(json.end_array().take() == "[0,0,0,0.1,0.062,0.001,-0,100,999999999999999.875,-1.000000e+15]");
  json.begin_array().value(std::numeric_limits<std::int64_t>::min()).value(std::numeric_limits<std::size_t>::max());
  CHECK(json.value(std::int8_t{-3}).end_array().take() == "[-9223372036854775808,18446744073709551615,-3]");
  CHECK(JsonWriter(JsonStyle{.decimals = 0}).begin_array().value(100.0).value(1.75).end_array().take() == "[100,2]");
}

}  // namespace rlx
