// Tokens of a chat template, with jinja2's rules of what whitespace around tags is kept.
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
  std::string text;  // of strings with escapes undone; of operators as written
  std::int64_t integer = 0;
  double real = 0;
  Position at;
};

/// Tokens up to the end or to the first fault, which the parser meets when it gets there.
struct Tokens {
  std::vector<Token> tokens;  // the last one is End, or stands for `fault`
  std::optional<Raised> fault;
};

/// `source` with line ends as \n and without the last one, as jinja2 reads it.
std::string normalise_source(std::string_view source);
Tokens tokenize(std::string_view source);

/// What jinja2 calls a token in messages.
std::string describe(const Token& token);

}  // namespace rlx::jinja
