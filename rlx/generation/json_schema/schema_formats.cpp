// Patterns of the formats of RFC 3339 (without leap seconds and year 0), RFC 4122, 3986, 4291 and ISO 8601.
#include "rlx/generation/json_schema/schema_formats.h"

#include <map>

namespace rlx {
namespace {

std::map<std::string, std::string, std::less<>> make_patterns() {
  const std::string year = "(?:\\d{3}[1-9]|\\d{2}[1-9]0|\\d[1-9]00|[1-9]000)";
  const std::string of_four = "(?:0[48]|[2468][048]|[13579][26])";  // two digits divisible by four, except 00
  const std::string leap_year = "(?:\\d\\d" + of_four + "|" + of_four + "00)";
  const std::string date = "(?:" + year +
                           "-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12]\\d|3[01])|(?:0[469]|11)-(?:0[1-9]|[12]\\d|30)|"
                           "02-(?:0[1-9]|1\\d|2[0-8]))|" +
                           leap_year + "-02-29)";
  const std::string clock = "(?:[01]\\d|2[0-3]):[0-5]\\d";
  const std::string time = clock + ":[0-5]\\d(?:\\.\\d{1,9})?(?:Z|[+-]" + clock + ")";
  const std::string label = "[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?";
  const std::string host = label + "(?:\\." + label + "){0,10}";
  const std::string byte = "(?:\\d|[1-9]\\d|1\\d\\d|2[0-4]\\d|25[0-5])";
  const std::string ipv4 = byte + "(?:\\." + byte + "){3}";
  const std::string group = "[0-9A-Fa-f]{1,4}", last32 = "(?:" + group + ":" + group + "|" + ipv4 + ")";
  // RFC 3986's nine forms: n groups before "::", and the possible rest.
  std::string ipv6 = "(?:(?:" + group + ":){6}" + last32 + "|::(?:" + group + ":){5}" + last32;
  for (int before = 1; before <= 5; ++before) {
    const std::string head = "(?:(?:" + group + ":){0," + std::to_string(before - 1) + "}" + group + ")?::";
    ipv6 += "|" + head + "(?:" + group + ":){" + std::to_string(5 - before) + "}" + last32;
  }
  ipv6 += "|(?:(?:" + group + ":){0,5}" + group + ")?::" + group + "|(?:(?:" + group + ":){0,6}" + group + ")?::)";
  const std::string atom = "[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+";
  const std::string hex = "[0-9A-Fa-f]", uri_char = "(?:[A-Za-z0-9._~!$&'()*+,;=:@-]|%" + hex + "{2})";
  const std::string authority = "(?:(?:[A-Za-z0-9._~!$&'()*+,;=:-]|%" + hex + "{2})*@)?" + host + "(?::\\d{1,5})?";
  const std::string path = "(?:/" + uri_char + "*)*", query = "(?:" + uri_char + "|[/?])*";
  const std::string uri = "[A-Za-z][A-Za-z0-9+.-]*:(?://" + authority + path + "|" + uri_char + "+" + path + ")(?:\\?" +
                          query + ")?(?:#" + query + ")?";
  std::map<std::string, std::string, std::less<>> all{
      {"date", date},
      {"time", time},
      {"date-time", date + "T" + time},
      {"duration",
       "P(?:\\d+W|(?:\\d+Y(?:\\d+M(?:\\d+D)?)?|\\d+M(?:\\d+D)?|\\d+D)(?:T(?:\\d+H(?:\\d+M(?:\\d+S)?)?|\\d+M(?:\\d+S)?"
       "|\\d+S))?|T(?:\\d+H(?:\\d+M(?:\\d+S)?)?|\\d+M(?:\\d+S)?|\\d+S))"},
      {"email", atom + "(?:\\." + atom + ")*@" + host},
      {"hostname", host},
      {"ipv4", ipv4},
      {"ipv6", ipv6},
      {"uuid", hex + "{8}-" + hex + "{4}-" + hex + "{4}-" + hex + "{4}-" + hex + "{12}"},
      {"uri", uri},
  };
  for (auto& [name, pattern] : all) pattern = "^(?:" + pattern + ")$";
  return all;
}

const std::map<std::string, std::string, std::less<>>& patterns() {
  static const auto all = make_patterns();
  return all;
}

}  // namespace

std::string_view schema_format_pattern(std::string_view format) {
  const auto found = patterns().find(format);
  return found == patterns().end() ? std::string_view() : std::string_view(found->second);
}

std::vector<std::string> schema_format_names() {
  std::vector<std::string> out;
  for (const auto& [name, pattern] : patterns()) out.push_back(name);
  return out;
}

}  // namespace rlx
