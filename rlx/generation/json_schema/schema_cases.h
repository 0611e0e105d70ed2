// A schema as cases. Each case is a conjunction of constraints, and a value must satisfy one case.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "rlx/generation/json_schema/number_ranges.h"
#include "rlx/generation/json_schema/schema_value.h"

namespace rlx {

/// A conjunction of schemas; empty: any value.
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
  std::optional<std::vector<const SchemaValue*>> values{};  // values of the keywords enum and const
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
  std::vector<const SchemaValue*> patterns{};  // values of the keywords pattern and format
  std::optional<NumberLimit> lower{}, upper{};
  unsigned constrained = 0;  // types whose keywords occurred
};

/// Reads the keywords of schemas.
class SchemaReader {
 public:
  SchemaReader(const SchemaValue& root, bool closed) : root_(root), closed_(closed) {}

  /// The cases of values that satisfy all of `schemas`. Errors: BadFile for a keyword with a wrong value and a $ref
  /// that is dangling or refers to itself; Unsupported for an unsupported constraining keyword.
  std::vector<SchemaCase> cases(const Schemas& schemas);
  /// Simplifies a conjunction: follows a $ref without siblings, drops `true` and {}, removes duplicates. Nothing when
  /// one schema is `false`.
  std::optional<Schemas> simplified(const Schemas& schemas);
  /// The alternatives of a schema that consists of alternatives only.
  const SchemaValue* only_alternatives(const SchemaValue& schema) const;
  /// Charges the cost of a schema, in units of about ten nanoseconds. Errors: Unsupported when the budget is exceeded.
  void spend(std::uint64_t steps);
  /// A schema that no value satisfies, for forbidden values.
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
  std::set<const SchemaValue*> open_;  // schemas whose cases are being computed
};

}  // namespace rlx
