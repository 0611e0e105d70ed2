// A schema as cases. Each case is a conjunction of constraints, and a value must satisfy one case.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "rlx/generation/json_schema/code_point_dfa.h"
#include "rlx/generation/json_schema/number_ranges.h"
#include "rlx/generation/json_schema/schema_references.h"
#include "rlx/generation/json_schema/schema_value.h"

namespace rlx {

/// A conjunction of schemas; empty: any value.
using Schemas = std::vector<const SchemaValue*>;

constexpr std::size_t kMaxSchemaCases = 1000, kMaxNestedSchemas = 1000;

struct SchemaCase {
  enum Types : unsigned { kNull = 1, kBoolean = 2, kObject = 4, kArray = 8, kNumber = 16, kString = 32, kAll = 63 };
  struct Property {
    std::string name{};
    Schemas schemas{};
  };
  /// The keyword patternProperties of one schema, with its additionalProperties: they hold for names that match none.
  struct NamePatterns {
    struct Named {
      const SchemaValue* schema = nullptr;  // its pointer ends in the pattern
      std::string pattern{};
    };
    std::vector<Named> patterns{};
    Schemas additional{};
  };
  struct Multiple {
    Decimal divisor{};
    bool of = true;  // false: numbers that are not multiples
    const SchemaValue* keyword = nullptr;
  };

  unsigned types = kAll;
  bool types_stated = false;
  bool integers = false;                                    // numbers are whole
  std::optional<std::vector<const SchemaValue*>> values{};  // values of the keywords enum and const
  std::vector<const SchemaValue*> excluded{};               // other values than these; no arrays and objects
  // Objects.
  std::vector<Property> properties{};
  std::vector<std::string> required{};
  Schemas additional{};                       // of members that are not among `properties`
  std::vector<NamePatterns> name_patterns{};  // more about these members
  Schemas names{};                            // schemas of the names
  std::uint32_t min_properties = 0, max_properties = kUnbounded;
  bool closed = false;   // no members but those that are named or match a pattern
  bool negated = false;  // some properties come from a negation
  // Arrays.
  std::vector<Schemas> prefix{};
  Schemas items{};
  std::uint32_t min_items = 0, max_items = kUnbounded;
  bool closed_items = false;            // no items but those of `prefix`
  const SchemaValue* unique = nullptr;  // the keyword uniqueItems
  // Strings.
  std::uint32_t min_length = 0, max_length = kUnbounded;
  std::vector<const SchemaValue*> patterns{}, not_patterns{};  // values of the keywords pattern and format
  std::optional<NumberLimit> lower{}, upper{};
  std::vector<Multiple> multiples{};
  unsigned constrained = 0;  // types whose keywords occurred
};

/// Reads the keywords of schemas.
class SchemaReader {
 public:
  SchemaReader(const SchemaValue& root, bool closed) : root_(root), references_(root), closed_(closed) {}

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
  /// The strings that a value of `pattern` or `format` describes, or a name pattern. Errors: Unsupported.
  const CodePointDfa& pattern_dfa(std::string_view pattern, std::string_view where);
  const CodePointDfa& pattern_dfa(const SchemaValue& keyword);
  DfaBudget& dfa_budget() { return dfa_budget_; }
  /// What a member called `name` must satisfy that is not among the properties of the case.
  Schemas schemas_of_other(const SchemaCase& c, std::string_view name);

 private:
  std::vector<SchemaCase> cases_of(const SchemaValue& schema);
  SchemaCase own_case(const SchemaValue& schema);
  void add_conditions(const SchemaValue& schema, const std::string& key, const SchemaValue& value,
                      std::vector<SchemaCase>& all);
  std::vector<SchemaCase> dependent_cases(const std::string& name, const SchemaValue& value);
  // Negations: schema_negation.cpp.
  std::vector<SchemaCase> cases_of_not(const SchemaValue& schema);
  void add_negated_keyword(const SchemaValue& schema, const std::string& key, const SchemaValue& value,
                           std::vector<SchemaCase>& out);
  void add_negated_members(const SchemaValue& schema, const std::string& key, const SchemaValue& value,
                           std::vector<SchemaCase>& out);
  std::vector<SchemaCase> cases_of_others(const std::vector<const SchemaValue*>& values, const SchemaValue& where);
  std::vector<SchemaCase> cases_of_not_one(const SchemaValue& alternatives);
  const SchemaValue& negation_of(const SchemaValue& schema);
  const SchemaValue& constant_of(const SchemaValue& value);
  void read_keyword(const SchemaValue& schema, const std::string& key, const SchemaValue& value, SchemaCase& out);
  bool read_number_keyword(const std::string& key, const SchemaValue& value, SchemaCase& out);
  void read_types(const SchemaValue& schema, const SchemaValue& value, SchemaCase& out);
  SchemaCase merged(SchemaCase a, const SchemaCase& b);
  void merge_properties(SchemaCase& to, const SchemaCase& b);
  void merge_required(SchemaCase& to, const SchemaCase& b);
  std::vector<SchemaCase> product(std::vector<SchemaCase> a, const std::vector<SchemaCase>& b,
                                  const SchemaValue& where);
  const SchemaValue& target(const SchemaValue& reference) const { return references_.target(reference); }

  const SchemaValue& root_;
  SchemaReferences references_;
  bool closed_;
  SchemaValue never_ = plain_schema(false), always_ = plain_schema(true);
  static SchemaValue plain_schema(bool allows);
  std::map<const SchemaValue*, std::unique_ptr<SchemaValue>> negations_, constants_;
  std::map<std::string, CodePointDfa, std::less<>> dfas_;  // of patterns
  DfaBudget dfa_budget_;
  std::uint64_t steps_left_ = 20'000'000;
  std::set<const SchemaValue*> open_, open_negations_;  // schemas whose cases are being computed
};

/// Whether a keyword constrains nothing.
bool is_annotation(std::string_view key);
/// The schemas in a keyword's list, which must have some.
const std::vector<std::unique_ptr<SchemaValue>>& schema_list(const SchemaValue& value);
/// The limits of minimum, maximum and their exclusive forms; nothing for other keywords.
std::optional<NumberLimit> limit_of_keyword(const std::string& key, const SchemaValue& value);
/// The value of multipleOf. Errors: BadFile unless it is a number > 0.
Decimal divisor_of(const SchemaValue& multiple_of);
/// The regular expression of a value of `pattern` or `format`. Errors: Unsupported for an unknown format.
std::string_view pattern_of(const SchemaValue& keyword);
bool is_format(const SchemaValue& pattern);
std::u32string code_points_of(std::string_view text);
/// Appends the schemas that are not there yet.
void append(Schemas& to, const Schemas& more);

}  // namespace rlx
