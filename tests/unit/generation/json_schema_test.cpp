// JSON schemas as grammars: accepted texts, refused texts, and schemas that cannot become a grammar.
#include "rlx/generation/json_schema.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <random>

#include "rlx/formats/json.h"
#include "rlx/generation/json_schema/number_ranges.h"
#include "rlx/generation/json_schema/schema_formats.h"
#include "tests/support/build_kind.h"
#include "tests/support/error_text.h"
#include "tests/support/needs.h"

namespace rlx {
namespace {

using test::contains;
using test::error_text;

const JsonSchemaOptions kCompact{JsonWhitespace::None};

// CPU time for a schema, about a second in an optimized build: the bound tells a second from exponential work.
#if defined(RLX_SLOW_BUILD)
constexpr std::clock_t kSecondsForAny = 60;
#else
constexpr std::clock_t kSecondsForAny = 15;
#endif

void check_texts(std::string_view schema, const std::vector<std::string>& good, const std::vector<std::string>& bad,
                 const JsonSchemaOptions& options = kCompact) {
  CAPTURE(schema);
  const Grammar g = json_schema_grammar(schema, options);
  for (const std::string& text : good) {
    CAPTURE(text);
    CHECK(g.matches(text));
  }
  for (const std::string& text : bad) {
    CAPTURE(text);
    CHECK_FALSE(g.matches(text));
  }
}
std::string with_pattern(std::string_view pattern) {
  return concat_text("{\"type\":\"string\",\"pattern\":\"", pattern, "\"}");
}
std::string schema_error(std::string_view schema) {
  return error_text([&] { (void)json_schema_grammar(schema, {}, "s.json"); });
}

}  // namespace

TEST_CASE("json schema: values of every type") {
  check_texts("{}", {"null", "true", "-1.5e+3", "\"a\"", "[1,[]]", "{\"a\":{\"b\":[]}}", "{}"},
              {"", "nul", "01", "1.", ".5", "+1", "\"\n\"", "[1,]", "{\"a\"}", "{a:1}", "1 "});
  check_texts("true", {"1"}, {});
  check_texts(R"({"type":"null"})", {"null"}, {"0"});
  check_texts(R"({"type":["boolean","null"]})", {"true", "false", "null"}, {"1", "\"true\""});
  check_texts(R"({"type":"integer"})", {"0", "-0", "-17", "120"}, {"1.0", "1e3", "00", "\"1\""});
  check_texts(R"({"type":["integer","string"]})", {"1", "\"1\""}, {"1.5", "null"});
  check_texts(R"({"type":"number"})", {"0", "1.5", "1E5", "-0.0e-10"}, {"1.", "e5", "Infinity", "NaN"});
  check_texts(R"({"type":"string"})",
              {R"("")", R"("a\"b\\\/\b\f\n\r\t")", R"("\u00e9\uD83D\ude00")", "\"\xC3\xA9\xF0\x9F\x98\x80\x7F\""},
              {R"("\x41")", R"("\ud83d")", R"("\udc00")", R"("\ud83d\u0041")", "\"a", "\"\t\"", "\"\xC3\""});
  check_texts(R"({"const":{"a":[1,"x",null,1.5]}})", {R"({"a":[1,"x",null,1.5]})"}, {R"({"a":[1,"x",null]})", "{}"});
  check_texts(R"({"enum":["a","\u0001\"",3,true,[],{}]})", {"\"a\"", R"("\u0001\"")", "3", "true", "[]", "{}"},
              {"\"b\"", "3.0", "false", "[1]"});
  check_texts(R"({"type":"string","enum":["a",1,null,"bcd"],"maxLength":2})", {"\"a\""}, {"1", "null", "\"bcd\""});
}

TEST_CASE("json schema: strings") {
  check_texts(R"({"type":"string","minLength":2,"maxLength":3})",
              {R"("ab")", R"("a\n")", R"("\ud83d\ude00x")", "\"\xF0\x9F\x98\x80\xC3\xA9\xC3\xA9\""},
              {R"("a")", R"("abcd")", R"("\u00e9")"});
  check_texts(R"({"pattern":"^[a-z]{2,4}(-\\d+)?$"})", {"\"ab\"", "\"abcd-12\""},
              {"\"a\"", "\"ab-\"", "\"abcde\"", "3"});
  check_texts(R"({"type":"string","pattern":"ab|^c"})", {"\"xxabyy\"", "\"ab\"", "\"c1\"", R"("\"ab")"},
              {"\"xc\"", "\"\""});
  check_texts(R"({"type":"string","pattern":"^a.b$"})", {"\"axb\"", R"("a\\b")", R"("a\"b")", R"("a\tb")"},
              {R"("a\nb")", "\"ab\""});
  check_texts(R"({"type":"string","pattern":"^[^a-c\\s]+\\x41\\u{1F600}$"})", {"\"xyA\xF0\x9F\x98\x80\""},
              {"\"aA\xF0\x9F\x98\x80\""});
  check_texts(R"({"type":"string","pattern":"^(?:a|bc){2}?(?<n>d*)$"})", {"\"abcd\"", "\"aa\""}, {"\"a\"", "\"aad?\""});
  check_texts(R"({"type":"string","pattern":"^[a-z]+$","minLength":2,"maxLength":4})", {"\"ab\"", "\"abcd\""},
              {"\"a\"", "\"abcde\""});
  check_texts(R"({"type":"string","pattern":"^\\w{3}$","maxLength":10})", {"\"a_9\""}, {"\"ab\""});
  check_texts(
      R"({"type":"string","format":"date"})", {"\"2024-02-29\"", "\"2023-12-31\"", "\"2000-02-29\""},
      {"\"2023-02-29\"", "\"1900-02-29\"", "\"2023-04-31\"", "\"0000-01-01\"", "\"2023-1-1\"", "\"2023-13-01\""});
  check_texts(R"({"type":"string","format":"date-time"})",
              {"\"2024-02-29T23:59:59.5Z\"", "\"2024-01-01T00:00:00+05:30\""},
              {"\"2024-01-01T24:00:00Z\"", "\"2024-01-01T00:00:00\"", "\"2024-01-01\""});
  check_texts(R"({"type":"string","format":"uuid"})", {"\"123e4567-e89b-12d3-a456-426614174000\""},
              {"\"123e4567e89b12d3a456426614174000\""});
  check_texts(R"({"type":"string","format":"ipv4"})", {"\"0.10.200.255\""},
              {"\"256.1.1.1\"", "\"01.1.1.1\"", "\"1.1.1\""});
  check_texts(R"({"type":"string","format":"ipv6"})",
              {"\"::\"", "\"::1\"", "\"1::\"", "\"1:2:3:4:5:6:7:8\"", "\"1:2::7:8\"", "\"::ffff:1.2.3.4\"",
               "\"1:2:3:4:5:6:7::\"", "\"1::3:4:5:6:7:8\""},
              {"\":::\"", "\"1:2:3:4:5:6:7\"", "\"1::2::3\"", "\"1:2:3:4:5:6:7:8:9\"", "\"12345::\""});
  check_texts(R"({"type":"string","format":"email"})", {"\"a.b+c@example.org\""}, {"\"a@\"", "\"@b\"", "\"a..b@c\""});
  check_texts(R"({"type":"string","format":"duration"})", {"\"P3D\"", "\"PT1H30M\"", "\"P2W\"", "\"P1Y2M3DT4S\""},
              {"\"P\"", "\"PT\"", "\"3D\""});
  check_texts(R"({"type":"string","format":"uri"})", {"\"https://example.org/a/b?c=d#e\"", "\"mailto:a@b\""},
              {"\"//x\"", "\"a b\""});
  CHECK(schema_format_names().size() == 10);
}

TEST_CASE("json schema: limits of numbers, beside the numbers themselves") {
  std::mt19937_64 rng(3);
  const auto random_limit = [&]() -> std::string {
    std::string s = rng() % 3 == 0 ? "-" : "";
    s += std::to_string(rng() % (rng() % 2 == 0 ? 12 : 1200));
    if (rng() % 2 == 0) s += "." + std::to_string(rng() % 100);
    return s;
  };
  for (int round = 0; round < 120; ++round) {
    const std::string low = random_limit(), high = random_limit();
    const bool with_low = rng() % 5 != 0, with_high = rng() % 5 != 0, integers = rng() % 2 == 0;
    const bool low_open = rng() % 2 == 0, high_open = rng() % 2 == 0;
    std::string schema = integers ? R"({"type":"integer")" : R"({"type":"number")";
    if (with_low) schema += std::string(",\"") + (low_open ? "exclusiveMinimum" : "minimum") + "\":" + low;
    if (with_high) schema += std::string(",\"") + (high_open ? "exclusiveMaximum" : "maximum") + "\":" + high;
    schema += "}";
    CAPTURE(schema);
    std::optional<Grammar> g;
    const std::string error = error_text([&] { g = json_schema_grammar(schema, kCompact); });
    if (!g) CHECK(contains(error, "no value fits"));
    const double a = std::strtod(low.c_str(), nullptr), b = std::strtod(high.c_str(), nullptr);
    int inside = 0;
    for (int i = 0; i < 150; ++i) {
      std::string text = random_limit();
      if (i % 5 == 0) text = rng() % 2 == 0 ? low : high;
      if (i % 7 == 0) text += text.find('.') == std::string::npos ? ".0" : "00";
      if (i % 11 == 0) text += text.find('.') == std::string::npos ? ".01" : "01";
      const double v = std::strtod(text.c_str(), nullptr);
      const bool wanted = !(with_low && (low_open ? v <= a : v < a)) && !(with_high && (high_open ? v >= b : v > b)) &&
                          !(integers && text.find('.') != std::string::npos);
      inside += wanted ? 1 : 0;
      CAPTURE(text);
      CHECK((g && g->matches(text)) == wanted);
    }
    if (inside > 0) CHECK(g.has_value());
  }
  check_texts(R"({"type":"number","minimum":0,"maximum":1})", {"0", "1", "0.5", "1.000", "-0", "-0.0", "0.999999"},
              {"1.0001", "-0.1", "2", "1e0"});
  check_texts(R"({"type":"integer","minimum":1e2,"exclusiveMaximum":1.01e2})", {"100"}, {"101", "99"});
  CHECK(compare(*Decimal::parse("-1.50"), *Decimal::parse("-15e-1")) == 0);
  CHECK(compare(*Decimal::parse("-2"), *Decimal::parse("-10")) > 0);
  CHECK_FALSE(Decimal::parse("1e401").has_value());
}

TEST_CASE("json schema: arrays and objects") {
  check_texts(R"({"type":"array","items":{"type":"integer"},"minItems":1,"maxItems":3})", {"[1]", "[1,2,3]"},
              {"[]", "[1,2,3,4]", "[null]"});
  check_texts(R"({"type":"array","prefixItems":[{"type":"null"},{"type":"integer"}],"items":false})",
              {"[]", "[null]", "[null,1]"}, {"[1]", "[null,1,2]"});
  check_texts(
      R"({"type":"array","prefixItems":[{"type":"null"},{"type":"integer"}],"items":{"type":"boolean"},"minItems":2})",
      {"[null,1]", "[null,1,true,false]"}, {"[]", "[null]", "[null,1,1]"});
  check_texts(R"({"type":"array","maxItems":0})", {"[]"}, {"[1]"});
  check_texts(R"({"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"null"},"c":{"type":"null"}},
            "required":["b"],"additionalProperties":false})",
              {R"({"b":null})", R"({"a":1,"b":null})", R"({"a":1,"b":null,"c":null})", R"({"b":null,"c":null})"},
              {"{}", R"({"a":1})", R"({"b":null,"a":1})", R"({"b":null,"d":1})", R"({"b":null,})"});
  check_texts(R"({"type":"object","properties":{"a":{},"b":{}},"additionalProperties":false})",
              {"{}", R"({"a":1})", R"({"b":1})", R"({"a":1,"b":2})"},
              {R"({"a":1,"a":1})", R"({"b":1,"a":2})", R"({"c":1})"});
  check_texts(R"({"properties":{"ab":{"type":"null"},"a":{"type":"null"}},"additionalProperties":{"type":"integer"}})",
              {"{}", R"({"ab":null,"abc":1,"b":2,"":3})", R"({"a":null})", R"({"\n":1})", R"({"é":1})"},
              {R"({"ab":1})", R"({"a":1})", R"({"abc":null})", R"({"\u0061":1})", "3"});
  check_texts(R"({"type":"object","additionalProperties":{"type":"integer"},"minProperties":2})", {R"({"a":1,"b":2})"},
              {"{}", R"({"a":1})"});
  check_texts(R"({"type":"object","required":["x"]})", {R"({"x":[]})", R"({"x":1,"y":2})"}, {"{}", R"({"y":2})"});
  check_texts(R"({"type":"object","properties":{"a":{"type":"null"}}})", {R"({"a":null,"b":1})"}, {});
  std::string many = R"({"type":"object","properties":{)";
  for (int i = 0; i < 3000; ++i) many += (i > 0 ? ",\"p" : "\"p") + std::to_string(i) + "\":{\"type\":\"null\"}";
  check_texts(many + R"(},"additionalProperties":{"type":"integer"}})",
              {R"({"p1":null,"p2999":null,"p":1,"p3000":2,"p\n":3})"}, {R"({"p17":1})", R"({"p2":null,"p1":null})"});
  const JsonSchemaOptions closed{JsonWhitespace::None, 0, true};
  check_texts(R"({"type":"object","properties":{"a":{"type":"null"}}})", {R"({"a":null})", "{}"},
              {R"({"a":null,"b":1})"}, closed);
  check_texts(R"({"prefixItems":[{"type":"null"}]})", {"[null]"}, {"[null,1]"}, closed);
}

TEST_CASE("json schema: references, alternatives and what holds together") {
  check_texts(R"({"$ref":"#/$defs/tree","$defs":{"tree":{"type":"object","properties":{"v":{"type":"integer"},
            "kids":{"type":"array","items":{"$ref":"#/$defs/tree"}}},"required":["v"],"additionalProperties":false}}})",
              {R"({"v":1})", R"({"v":1,"kids":[{"v":2,"kids":[]},{"v":3}]})"},
              {R"({"kids":[]})", R"({"v":1,"kids":[{}]})"});
  check_texts(R"({"type":"array","items":{"$ref":"#"}})", {"[[],[[]]]"}, {"[1]"});
  check_texts(R"({"definitions":{"a/b~c d":{"type":"null"}},"$ref":"#/definitions/a~1b~0c%20d"})", {"null"}, {"1"});
  check_texts(R"({"anyOf":[{"type":"integer"},{"type":"string","maxLength":1}]})", {"1", "\"a\""}, {"\"ab\"", "null"});
  check_texts(R"({"oneOf":[{"const":1},{"const":2}]})", {"1", "2"}, {"3"});
  check_texts(R"({"allOf":[{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"]},
                     {"properties":{"a":{"minimum":5},"b":{"type":"null"}},"required":["b"]}],
            "unevaluatedProperties":false})",
              {R"({"a":5,"b":null})"}, {R"({"a":4,"b":null})", R"({"a":5})", R"({"a":5,"b":null,"c":1})"});
  check_texts(R"({"type":"object","properties":{"k":{}},"anyOf":[{"required":["k"]},{"required":["m"]}]})",
              {R"({"k":1})", R"({"m":1})", R"({"k":1,"m":2})"}, {"{}", R"({"n":1})"});
  check_texts(R"({"allOf":[{"type":["string","null"]},{"minLength":1}]})", {"null", "\"a\""}, {"\"\"", "1"});
  check_texts(R"({"allOf":[{"enum":[1,2,3]},{"enum":[2,3,4]},{"maximum":2}]})", {"2"}, {"1", "3", "4"});
  check_texts(R"({"enum":[{"a":1,"b":2},{"a":1},{"b":1},[1,2],[1],3],"required":["a"],"maxItems":1,
                  "properties":{"a":{"anyOf":[{"const":1},{"type":"null"}]}},"additionalProperties":{"type":"null"}})",
              {R"({"a":1})", "[1]", "3"}, {R"({"a":1,"b":2})", R"({"b":1})", "[1,2]"});
  check_texts(R"({"$ref":"#/$defs/a","maxItems":1,"$defs":{"a":{"type":"array","items":{"type":"null"}}}})",
              {"[]", "[null]"}, {"[null,null]"});
  check_texts(R"({"anyOf":[{"type":"null"},{"type":"object","properties":{"x":false},"required":["x"]}]})", {"null"},
              {"{}"});
}

TEST_CASE("json schema: numbers of any size and spelling") {
  check_texts(R"({"const":18446744073709551615})", {"18446744073709551615"}, {"18446744073709551616", "1.8e19"});
  check_texts(R"({"enum":[9223372036854775809]})", {"9223372036854775809"}, {"9223372036854775808"});
  check_texts(R"({"type":"integer","minimum":0,"maximum":18446744073709551615})", {"18446744073709551615"},
              {"18446744073709551616", "18446744073709551999"});
  check_texts(R"({"type":"integer","minimum":9223372036854775809})", {"9223372036854775809"}, {"9223372036854775808"});
  check_texts(R"({"const":123456789012345678901234567890})", {"123456789012345678901234567890"},
              {"1.2345678901234568e+29", "123456789012345678901234567891"});
  check_texts(R"({"enum":[1e2,2.50,-0.0,1E-3]})", {"100", "1e2", "2.5", "2.50", "0", "-0.0", "0.001", "1E-3"},
              {"1e3", "-1", "2.500"});
  check_texts(R"({"const":1e400})", {"1e400"}, {"1e401", "10e399"});
  check_texts(R"({"const":-12.5e999})", {"-12.5e999", "-125e998"}, {"12.5e999", "-1e999"});
  check_texts(R"({"const":0e99999})", {"0", "0e99999"}, {"1"});
  check_texts(R"({"allOf":[{"enum":[1,2.0,[1.0]]},{"enum":[1.0,2,[1]]}]})", {"1", "1.0", "2", "[1]"}, {"3"});
  check_texts(R"({"enum":[1.0,1.5],"type":"integer"})", {"1"}, {"1.5"});
  check_texts(R"({"allOf":[{"const":{"a":1,"b":2}},{"const":{"b":2.0,"a":1}}]})", {R"({"b":2,"a":1})"}, {"{}"});
  // What is left of the text is the parser's.
  for (const char* bad : {"{\"const\":01}", "{\"const\":1.}", "{\"const\":.5}", "{\"const\":1e}", "{\"const\":--1}",
                          "{\"const\":1-2}", "{\"const\":+1}", "{\"const\":1 2}", "{\"const\":tru1}"})
    CHECK(contains(schema_error(bad), "not valid JSON"));
  CHECK(contains(schema_error(R"({"minimum":1e400000})"), "s.json#/minimum: the limit has more than 400 digits"));
  CHECK(schema_error(R"({"title":"\"3\\","const":"1e5"})").empty());
}

TEST_CASE("json schema: negation, conditions, patterns of names, counts") {
  check_texts(R"({"type":"string","not":{"enum":["a","b"]}})", {R"("c")", R"("ab")", R"("")"},
              {R"("a")", R"("b")", "1"});
  check_texts(R"({"not":{"type":"string"}})", {"1", "null", "[\"a\"]"}, {R"("a")"});
  check_texts(R"({"not":{"const":[1,{"a":null}]}})",
              {"[]", "[1]", "[1,{}]", "[1,{\"a\":1}]", "[1,{\"a\":null},1]", "1"}, {"[1,{\"a\":null}]"});
  check_texts(R"({"type":"integer","not":{"multipleOf":2},"minimum":3,"maximum":8})", {"3", "5", "7"}, {"4", "9", "1"});
  check_texts(R"({"type":"string","not":{"format":"date"}})", {R"("2024-02-30")", R"("")"}, {R"("2024-02-29")"});
  check_texts(R"({"type":"object","properties":{"kind":{"enum":["a","b"]},"x":{"type":"integer"}},"required":["kind"],
                  "additionalProperties":false,"if":{"properties":{"kind":{"const":"a"}}},"then":{"required":["x"]},
                  "else":{"properties":{"x":false}}})",
              {R"({"kind":"a","x":1})", R"({"kind":"b"})"}, {R"({"kind":"a"})", R"({"kind":"b","x":1})", "{}"});
  check_texts(R"({"type":"object","patternProperties":{"^n_":{"type":"integer"},"_s$":{"type":"string"}},
                  "additionalProperties":false})",
              {R"({"n_1":1,"a_s":"x"})", "{}"}, {R"({"n_1":"x"})", R"({"n_s":1})", R"({"other":1})"});
  check_texts(R"({"type":"object","propertyNames":{"pattern":"^[a-z]{1,3}$"},"additionalProperties":{"type":"null"}})",
              {R"({"ab":null,"abc":null})"}, {R"({"abcd":null})", R"({"A":null})", R"({"":null})"});
  check_texts(R"({"type":"object","properties":{"a":{},"b":{},"c":{}},"additionalProperties":false,"minProperties":2,
                  "maxProperties":2})",
              {R"({"a":1,"b":2})", R"({"b":1,"c":2})"}, {R"({"a":1})", R"({"a":1,"b":2,"c":3})", "{}"});
  check_texts(R"({"type":"object","maxProperties":1,"additionalProperties":{"type":"null"}})", {"{}", R"({"x":null})"},
              {R"({"x":null,"y":null})"});
  check_texts(R"({"type":"array","items":{"enum":[1,2,3]},"uniqueItems":true,"minItems":1,"maxItems":2})",
              {"[1]", "[3,1]"}, {"[]", "[1,1]", "[1,2,3]"});
  check_texts(R"({"type":"number","multipleOf":0.01})", {"1", "1.25", "-0.10", "3.000"}, {"1.255", "0.001", "1e2"});
  check_texts(R"({"type":"integer","multipleOf":7})", {"0", "-7", "700"}, {"8", "1"});
  check_texts(R"({"type":"string","nullable":true})", {"null", R"("")"}, {"1"});
  check_texts(R"({"type":"array","items":[{"type":"null"}],"additionalItems":false})", {"[]", "[null]"},
              {"[1]", "[null,1]"});
  check_texts(R"({"type":"string","pattern":"^(ab)*$","maxLength":5})", {R"("")", R"("abab")"},
              {R"("ababab")", R"("a")"});
  check_texts(R"({"allOf":[{"pattern":"a"},{"pattern":"b$"}]})", {R"("ab")", R"("xab")"}, {R"("a")", R"("ba")"});
  check_texts(R"({"type":"object","dependentRequired":{"a":["b"]},"properties":{"a":{},"b":{}},
                  "additionalProperties":false})",
              {"{}", R"({"b":1})", R"({"a":1,"b":1})"}, {R"({"a":1})"});
  check_texts(R"({"$ref":"#item","$defs":{"x":{"$anchor":"item","type":"null"}}})", {"null"}, {"1"});
  check_texts(R"({"$id":"http://x/y.json","$ref":"z.json#/$defs/q","$defs":{"z":{"$id":"http://x/z.json",
                  "$defs":{"q":{"$ref":"#n"},"n":{"$anchor":"n","type":"boolean"}}}}})",
              {"true"}, {"1"});
  check_texts(R"({"definitions":{"x":{"$id":"#item","type":"null"}},"$ref":"#item"})", {"null"}, {"1"});
  const JsonSchemaOptions closed{JsonWhitespace::None, 0, true};
  check_texts(R"({"type":"object","allOf":[{"properties":{"a":{}}},{"properties":{"b":{}}}]})", {R"({"a":1,"b":2})"},
              {R"({"a":1,"b":2,"c":3})"}, closed);
  check_texts(R"({"type":"object","properties":{"a":{}},"patternProperties":{"^x":{}}})", {R"({"a":1,"xy":2})"},
              {R"({"b":1})"}, closed);
}

TEST_CASE("json schema: the negation of every format can be told") {
  for (const std::string& name : schema_format_names()) {
    CAPTURE(name);
    const Grammar g = json_schema_grammar(concat_text(R"({"type":"string","not":{"format":")", name, "\"}}"), kCompact);
    CHECK(g.matches(R"("no such thing!")"));
  }
}

TEST_CASE("json schema: whitespace") {
  const char* schema = R"({"type":"object","properties":{"a":{"type":"array","items":{"type":"integer"}},"b":{}},
                           "required":["a","b"],"additionalProperties":false})";
  const std::string none = R"({"a":[1,2],"b":{}})", spaced = R"({"a": [1, 2], "b": {}})",
                    lines = "{\n  \"a\" : [\t1 ,\r\n2 ] ,\n\"b\": { }\n}";
  check_texts(schema, {none}, {spaced, lines});
  check_texts(schema, {spaced}, {none, lines}, {JsonWhitespace::Spaced});
  check_texts(schema, {none, spaced, lines}, {none + " ", " " + none}, {});
  check_texts(schema, {none, spaced}, {lines}, {JsonWhitespace::Flexible, 1});
  check_texts(R"({"const":{"a":[1,2]}})", {"{ \"a\" :[1 , 2]}"}, {}, {});
  CHECK(json_grammar().matches("[ {\n} ]"));
  CHECK_FALSE(json_grammar(kCompact).matches("[ ]"));
}

TEST_CASE("json schema: what is too large is refused at once, what is only large is not" *
          doctest::test_suite(rlx::test::kSlow)) {
  const auto listed = [](std::size_t count, const std::function<std::string(const std::string&)>& item) {
    std::string out;
    for (std::size_t i = 0; i < count; ++i) out += (i > 0 ? "," : "") + item(std::to_string(i));
    return out;
  };
  const std::string words = listed(100000, [](const auto& i) { return "\"word " + i + "\""; });
  const auto properties = [&](std::size_t count) {
    return listed(count, [](const auto& i) { return "\"p" + i + "\":{\"type\":\"null\"}"; });
  };
  const std::string names = listed(20000, [](const auto& i) { return "\"p" + i + "\""; });
  std::string doubled = R"("a0":{"type":"object","properties":{"x":{}}})";
  for (int i = 1; i <= 40; ++i) {
    const std::string before = concat_text("{\"$ref\":\"#/$defs/a", i - 1, "\"}");
    doubled += concat_text(",\"a", i, "\":{\"allOf\":[", before, ",", before, "]}");
  }
  std::string chain = R"("a0":{"type":"null"})";
  for (int i = 1; i <= 30000; ++i) chain += concat_text(",\"a", i, "\":{\"$ref\":\"#/$defs/a", i - 1, "\"}");
  struct Case {
    std::string schema, error, text;
  };
  const std::vector<Case> cases{
      {"{\"enum\":[" + words + "]}", {}, "\"word 77777\""},
      {"{\"type\":\"string\",\"pattern\":\"^word\",\"enum\":[" + words + "]}", {}, "\"word 77777\""},
      {"{\"allOf\":[{\"enum\":[" + words + "]},{\"enum\":[" + words + "]}]}", {}, "\"word 77777\""},
      {"{\"enum\":[" + listed(1000000, [](const auto& i) { return i; }) + "]}", "combines too many cases", {}},
      {R"({"type":"array","items":{"type":"array","items":{"type":"string"},"maxItems":1000000000},"minItems":2})",
       {},
       "[[\"a\"],[]]"},
      {"{\"type\":\"object\",\"properties\":{" + properties(2000) + "}}", {}, "{\"p3\":null,\"p1999\":null}"},
      {"{\"type\":\"object\",\"properties\":{" + properties(20000) + "},\"required\":[" + names + "]}",
       {},
       "{" + listed(20000, [](const auto& n) { return "\"p" + n + "\":null"; }) + "}"},
      {"{\"type\":\"object\",\"properties\":{" +
           listed(2000,
                  [](const auto& i) { return concat_text("\"p", i, R"(":{"type":"string","maxLength":10)", i, "}"); }) +
           "}}",
       "too large",
       {}},
      {"{\"allOf\":[" + listed(2000, [](const auto& i) { return concat_text("{\"properties\":{\"p", i, "\":{}}}"); }) +
           "]}",
       {},
       "{\"p1999\":1}"},
      {"{\"type\":\"object\",\"properties\":{" +
           listed(500, [](const auto& i) { return concat_text("\"q", i, "\":{}"); }) + "},\"anyOf\":[" +
           listed(1000, [](const auto& i) { return concat_text("{\"properties\":{\"p", i, "\":{}}}"); }) + "]}",
       "more than 1000000",
       {}},
      {"{\"anyOf\":[" + listed(50000, [](const auto& i) { return concat_text("{\"required\":[\"p", i, "\"]}"); }) +
           "]}",
       "too many rules",
       {}},
      {"{\"$ref\":\"#/$defs/a40\",\"$defs\":{" + doubled + "}}", "combines too many cases", {}},
      {"{\"$ref\":\"#/$defs/a30000\",\"$defs\":{" + chain + "}}", {}, "null"},
      {with_pattern("^(((a{0,1000}){0,1000}){0,1000})$"), {}, "\"aaa\""},
      {with_pattern("^(((a+)+)+)+$"), {}, "\"aaa\""},
      {with_pattern("a[ab]{1000}b"), {}, "\"" + std::string(1003, 'a') + "b\""},
      {R"({"type":"string","pattern":")" + std::string(1000000, 'a') + "\"}", "more than 1000000", {}},
  };
  for (const Case& c : cases) {
    CAPTURE(c.schema.substr(0, 80));
    const std::clock_t start = std::clock();
    const std::string error = error_text([&] {
      const Grammar g = json_schema_grammar(c.schema, kCompact);
      CHECK((c.text.empty() || g.matches(c.text)));
    });
    CHECK(error.empty() == c.error.empty());
    CHECK(contains(error, c.error));
    CHECK((std::clock() - start) / CLOCKS_PER_SEC < kSecondsForAny);
  }
}

TEST_CASE("json schema: what cannot become a grammar is said, with its place") {
  CHECK(contains(schema_error(R"({"properties":{"a/b":{"contains":{}}}})"),
                 "s.json#/properties/a~1b/contains: the keyword contains"));
  CHECK(contains(schema_error(R"({"items":{"uniqueItems":true}})"), "s.json#/items/uniqueItems"));
  for (const char* keyword :
       {"not", "patternProperties", "propertyNames", "dependentRequired", "contains", "multipleOf", "maxProperties",
        "unevaluatedItems", "additionalItems", "nullable", "$dynamicRef", "then", "uniqueItems"})
    CHECK(contains(schema_error(std::string("{\"") + keyword + "\":\"x\"}"), concat_text("s.json#/", keyword)));
  CHECK(contains(schema_error(R"({"if":3,"then":{}})"), "s.json#/if: a schema must be an object"));
  CHECK(contains(schema_error(R"({"multipleOf":0})"), "s.json#/multipleOf: must be a number > 0"));
  CHECK(contains(schema_error(R"({"multipleOf":1234567})"), "s.json#/multipleOf: this condition"));
  CHECK(contains(schema_error(R"({"nullable":true})"), "nullable without type has no meaning"));
  CHECK(contains(schema_error(R"({"then":{}})"), "then without if has no meaning"));
  CHECK(contains(schema_error(R"({"items":[],"prefixItems":[{}]})"), "items is a list beside prefixItems"));
  for (const char* inner : {R"("patternProperties":{"a":false})", R"("propertyNames":{"maxLength":1})",
                            R"("items":{"type":"null"})", R"("additionalProperties":false)", R"("uniqueItems":true)"})
    CHECK(contains(schema_error(concat_text("{\"not\":{", inner, "}}")), "under not or if cannot become a grammar"));
  CHECK(contains(schema_error(R"({"not":{"$ref":"#"}})"), "refers to itself"));
  CHECK(contains(schema_error(R"({"not":{"not":{"$ref":"#"}}})"), "refers to itself"));
  CHECK(contains(schema_error(R"({"not":{}})"), "no value fits"));
  CHECK(contains(schema_error(R"({"unevaluatedProperties":false,"not":{"properties":{"a":{}}}})"), "unevaluated"));
  CHECK(contains(schema_error(R"({"maxlength":3})"), "did you mean 'maxLength'"));
  CHECK(contains(schema_error(R"({"type":"strng"})"), "did you mean 'string'"));
  CHECK(contains(schema_error(R"({"type":"string","format":"uid"})"), "did you mean 'uuid'"));
  CHECK(contains(schema_error(with_pattern("(?=a)")), "s.json#/pattern: pattern '(?=a)', position 3: lookaround"));
  for (const char* pattern : {R"(\\bx)", R"((a)\\1)", R"(\\p{L})", "a^b", "(^a)", "a{x}"})
    CHECK(contains(schema_error(with_pattern(pattern)), "s.json#/pattern"));
  for (const char* pattern : {"(a", "a)", "[a", "*a", "a**", "[b-a]", R"(\\q)", "a{3,2}"})
    CHECK(contains(schema_error(with_pattern(pattern)), "bad file"));
  CHECK(contains(schema_error(R"({"type":"string","pattern":"^(ab)*$","maxLength":30000})"), "too many states"));
  CHECK(contains(schema_error(R"({"allOf":[{"pattern":"a[ab]{30}$"},{"pattern":"b"}]})"), "too many states"));
  CHECK(contains(schema_error(R"({"$ref":"#/$defs/x"})"), "refers to a schema that does not exist"));
  CHECK(contains(schema_error(R"({"$ref":"http://x/y"})"), "refers to another document"));
  CHECK(contains(schema_error(R"({"$ref":"#"})"), "refers to itself"));
  CHECK(contains(schema_error(R"({"allOf":[{"$ref":"#"}]})"), "refers to itself"));
  CHECK(contains(schema_error("false"), "no value fits this schema"));
  CHECK(
      contains(schema_error(R"({"type":"object","properties":{"a":{"$ref":"#"}},"required":["a"]})"), "no value fits"));
  CHECK(contains(schema_error(R"({"type":"integer","minimum":3,"maximum":2})"), "no value fits"));
  CHECK(contains(schema_error(R"({"minLength":-1})"), "whole number"));
  CHECK(contains(schema_error(R"({"minLength":"1"})"), "s.json#/minLength: must be a whole number"));
  CHECK(contains(schema_error(R"({"required":"a"})"), "must be a list of names"));
  CHECK(contains(schema_error(R"({"anyOf":[]})"), "not empty"));
  CHECK(contains(schema_error(R"({"items":3})"), "a schema must be an object, true or false"));
  CHECK(contains(schema_error(R"({"type":"object","type":"array"})"), "occurs twice"));
  CHECK(contains(schema_error("{\"a\""), "not valid JSON"));
  CHECK(contains(schema_error(R"({"properties":{"a":false},"additionalProperties":false,"minProperties":1})"),
                 "no value fits"));
  CHECK(contains(schema_error(R"({"$ref":"#here","$defs":{"a":{"$anchor":"her"}}})"), "did you mean 'her'"));
  CHECK(contains(schema_error(R"({"$defs":{"a":{"$anchor":"x"},"b":{"$anchor":"x"}}})"), "'x' occurs twice"));
  std::string wide = "{\"allOf\":[";
  for (int i = 0; i < 12; ++i) wide += std::string(i > 0 ? "," : "") + R"({"anyOf":[{"minimum":1},{"minimum":2}]})";
  CHECK(contains(schema_error(wide + "]}"), "more than 1000 combinations"));
  CHECK(schema_error(R"({"title":"t","description":"d","default":3,"examples":[1],"$comment":"c","x-own":1})").empty());
}

}  // namespace rlx
