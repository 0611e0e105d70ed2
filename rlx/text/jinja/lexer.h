// The lexer of chat templates, with jinja2's rules for white space around tags.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rlx/text/jinja/value.h"

namespace rlx::jinja {

enum class TokenKind : std::uint8_t {
  Data,
  VariableBegin,
  VariableEnd,
  BlockBegin,
  BlockEnd,
  Name,
  String,
  Integer,
  Float,
  Operator,
  End
};

struct Token {
  TokenKind kind = TokenKind::End;
  std::string text;  // strings: decoded; operators: as written
  std::int64_t integer = 0;
  std::string large{};  // the decimal digits of an integer beyond 64 bits
  double real = 0;
  Position at;
};

/// Tokens up to the end or to the first error. The parser raises the error when it reaches it.
struct Tokens {
  std::vector<Token> tokens;  // the last one is End, or stands for `fault`
  std::optional<Raised> fault;
};

/// `source` with line ends as \n and without the final line end, as in jinja2.
std::string normalise_source(std::string_view source);
Tokens tokenize(std::string_view source);

/// jinja2's name of a token in messages.
std::string describe(const Token& token);

}  // namespace rlx::jinja
