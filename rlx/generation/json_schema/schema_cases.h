// What a schema says, as cases: each is a set of constraints that hold together, and a value needs to fit one of them.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "rlx/generation/json_schema/number_ranges.h"
#include "rlx/generation/json_schema/schema_value.h"

namespace rlx {

/// Schemas that hold together; none: anything goes.
using Schemas = std::vector<const SchemaValue*>;

struct SchemaCase {
  enum Types : unsigned { kNull = 1, kBoolean = 2, kObject = 4, kArray = 8, kNumber = 16, kString = 32, kAll = 63 };
  struct Property {
    std::string name{};
    Schemas schemas{};
  };

  unsigned types = kAll;
  bool types_stated = false;
  bool integers = false;                                    // numbers are whole
  std::optional<std::vector<const SchemaValue*>> values{};  // of enum and const
  // Objects.
  std::vector<Property> properties{};
  std::vector<std::string> required{};
  Schemas additional{};
  std::uint32_t min_properties = 0;
  // Arrays.
  std::vector<Schemas> prefix{};
  Schemas items{};
  std::uint32_t min_items = 0, max_items = kUnbounded;
  // Strings.
  std::uint32_t min_length = 0, max_length = kUnbounded;
  std::vector<const SchemaValue*> patterns{};  // values of pattern and format
  std::optional<NumberLimit> lower{}, upper{};
  unsigned constrained = 0;  // types whose keywords came up
};

/// Reads the keywords of schemas.
class SchemaReader {
 public:
  SchemaReader(const SchemaValue& root, bool closed) : root_(root), closed_(closed) {}

  /// Cases of what fits all of `schemas`. Errors: BadFile for a keyword with a wrong value and a $ref that leads
  /// nowhere or to itself; Unsupported for a keyword that would constrain but cannot.
  std::vector<SchemaCase> cases(const Schemas& schemas);
  /// The schemas without detours: $ref followed where nothing stands beside it, `true` and {} left out, each once.
  /// Nothing when one is `false`.
  std::optional<Schemas> simplified(const Schemas& schemas);
  /// The alternatives of a schema that is only that.
  const SchemaValue* only_alternatives(const SchemaValue& schema) const;
  /// Counts what a schema costs, in units of ten nanoseconds or so. Errors: Unsupported when it is too much.
  void spend(std::uint64_t steps);
  /// A set of no members, for what is forbidden.
  const SchemaValue& never() const { return never_; }

 private:
  std::vector<SchemaCase> cases_of(const SchemaValue& schema);
  SchemaCase own_case(const SchemaValue& schema);
  void read_keyword(const SchemaValue& schema, const std::string& key, const SchemaValue& value, SchemaCase& out);
  bool read_number_keyword(const std::string& key, const SchemaValue& value, SchemaCase& out);
  void read_types(const SchemaValue& value, SchemaCase& out);
  SchemaCase merged(SchemaCase a, const SchemaCase& b);
  void merge_properties(SchemaCase& to, const SchemaCase& b);
  void merge_required(SchemaCase& to, const SchemaCase& b);
  std::vector<SchemaCase> product(std::vector<SchemaCase> a, const std::vector<SchemaCase>& b,
                                  const SchemaValue& where);
  const SchemaValue& target(const SchemaValue& reference) const;

  const SchemaValue& root_;
  bool closed_;
  SchemaValue never_ = false_schema();
  static SchemaValue false_schema();
  std::uint64_t steps_left_ = 20'000'000;
  std::set<const SchemaValue*> open_;  // those whose cases are being made
};

}  // namespace rlx
