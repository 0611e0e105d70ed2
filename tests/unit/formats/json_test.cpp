// JSON documents: access, error texts with positions.
#include "rlx/formats/json.h"

#include <doctest/doctest.h>

#include <functional>

#include "tests/support/error_text.h"

namespace rlx {

using test::contains;
using test::error_text;

TEST_CASE("json: values of every kind") {
  const JsonDocument d = JsonDocument::parse(
      R"({"n":null,"b":true,"i":-7,"f":1e-12,"s":"a\u00e9\n","a":[1,2.5,"x"],"o":{"k":1,"k":2},
           "big":18446744073709551615})",
      "t.json");
  const JsonValue r = d.root();
  CHECK(r.at("n").is_null());
  CHECK(r.get_bool("b"));
  CHECK(r.get_int("i") == -7);
  CHECK(r.get_number("f") == 1e-12);
  CHECK(r.get_number("i") == -7.0);
  CHECK(r.get_string("s") == "aé\n");
  CHECK(r.at("a").elements("a").size() == 3);
  const auto members = r.at("o").members("o");  // duplicates stay visible
  CHECK(members.size() == 2);
  CHECK(members[1].second.as_int("k") == 2);
  CHECK(r.get_int("absent", 5) == 5);
  CHECK(r.get_int("n", 5) == 5);
  CHECK(r.get_bool("absent", true));
  CHECK(r.get_string("n", "x") == "x");
  CHECK_FALSE(r.find("absent"));
  CHECK_FALSE(r.at("a").find("k"));

  CHECK(contains(error_text([&] { r.get_int("s"); }), "t.json: \"s\" must be an integer, got a string"));
  CHECK(contains(error_text([&] { r.get_int("f"); }), "\"f\" must be an integer, got a number"));
  CHECK(contains(error_text([&] { r.get_int("b", 3); }), "\"b\" must be an integer, got a boolean"));
  CHECK(contains(error_text([&] { r.get_int("big"); }), "larger than a 64-bit signed integer"));
  CHECK(contains(error_text([&] { r.get_bool("i"); }), "must be true or false"));
  CHECK(contains(error_text([&] { r.at("bi"); }), "missing key \"bi\"\n  hint: did you mean 'b'?"));
  CHECK(contains(error_text([&] { r.at("a").at("k"); }), "expected an object with the key \"k\", got an array"));
  CHECK(contains(error_text([&] { r.at("i").elements("i"); }), "\"i\" must be an array"));
  CHECK(contains(error_text([&] { r.at("i").members("i"); }), "\"i\" must be an object"));
}

TEST_CASE("json: faults are placed") {
  const auto message = [](std::string_view text) { return error_text([&] { JsonDocument::parse(text, "t.json"); }); };
  CHECK(contains(message("{\n  \"a\": 1,\n  \"b\" 2}"),
                 "t.json: not valid JSON at byte 18 (line 3, column 7): expected ':' after a key"));
  CHECK(contains(message(""), "expected a value, but the text ends there"));
  CHECK(contains(message("[1, 2"), "byte 5 (line 1, column 6): expected ',' or ']', but the text ends there"));
  CHECK(contains(message("{\"a\":1}x"), "byte 7 (line 1, column 8): expected the end of the text"));
  CHECK(contains(message("[01]"), "byte 2"));
  CHECK(contains(message("[1.]"), "expected a digit"));
  CHECK(contains(message("[tru]"), "expected \"true\""));
  CHECK(contains(message("[\"a]"), "closing quote"));
  CHECK(contains(message("[\"\\x\"]"), "a valid escape"));
  CHECK(contains(message("[\"a\nb\"]"), "control character"));
  CHECK(contains(message("{1:2}"), "a string in double quotes"));
  CHECK(contains(message("[\"\xFF\"]"), "t.json: not valid JSON at byte 2 (line 1, column 3): expected valid UTF-8"));
  CHECK(contains(message("[\"\xc3\xa9\xe2\x82\"]"), "at byte 4 (line 1, column 5): expected valid UTF-8"));
  CHECK(
      message("[\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\", -9223372036854775808, 18446744073709551615, 1e308]").empty());
  for (const std::string& number : {std::string("1e309"), std::string("-1.5e999"), std::string(400, '9')})
    CHECK(contains(message(concat_text("{\"a\":", number, "}")),
                   "at byte 5 (line 1, column 6): expected a number that fits 64 bits"));
  CHECK(contains(message(std::string(5000, '[')), "1024 nested levels"));
  CHECK(contains(message(std::string_view("[1]\0", 4)), "byte 3"));
}

TEST_CASE("json: whole numbers beyond 64 bits are read as numbers") {
  const JsonDocument d = JsonDocument::parse(
      R"({"model_max_length":1000000000000000019884624838656,"a":[-9223372036854775809, 18446744073709551616 ],)"
      R"("b":"\"18446744073709551616","c":18446744073709551615})",
      "t.json");
  CHECK(d.root().get_number("model_max_length") == 1e30);
  CHECK(d.root().at("a").elements("a")[0].as_number("a") == -9223372036854775808.0);
  CHECK(d.root().at("a").elements("a")[1].kind() == JsonKind::Number);
  CHECK(d.root().get_string("b") == "\"18446744073709551616");
  CHECK(d.root().at("c").kind() == JsonKind::Integer);
}

TEST_CASE("json: an empty text without a pointer is a fault of the text") {
  CHECK_THROWS_AS((void)JsonDocument::parse(std::string_view(), "nothing.json"), Error);
}

TEST_CASE("json: integers beyond 64 bits keep their digits") {
  const auto document = JsonDocument::parse(
      R"([1, -9223372036854775808, 9223372036854775808, 18446744073709551615, {"a": 18446744073709551616, "b": 1e20},
          -123456789012345678901234567890, 100000000000000000000.0, "99999999999999999999", 7])",
      "t");
  std::vector<std::string> digits;
  const std::function<void(const JsonValue&)> read = [&](const JsonValue& v) {
    if (v.is_object())
      for (const auto& [key, e] : v.members("t")) read(e);
    else
      digits.push_back(v.large_integer().value_or("-"));
  };
  for (const JsonValue& v : document.root().elements("t")) read(v);
  CHECK(digits == std::vector<std::string>{"-", "-", "9223372036854775808", "18446744073709551615",
                                           "18446744073709551616", "-", "-123456789012345678901234567890", "-", "-",
                                           "-"});
}

}  // namespace rlx
