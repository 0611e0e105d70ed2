// Misuse of models from a hub.
#include <cstdlib>

#include "rlx/hub/hub.h"
#include "tests/support/fake_hub.h"
#include "tests/support/temp_dir.h"
#include "tests/unit/api/misuse.h"

using namespace rlx;

TEST_CASE("misuse: hub") {
  const test::TempDir dir;
  test::FakeHub hub;
  test::FakeTransport transport(hub);
  HubSettings s;
  s.cache = dir.file("hub");
  for (const char* text : {"", "/", ":", "@", "a/b/c", "../a", "a/b@", "a/b:", "a/b:/c"}) {
    CHECK_FALSE(parse_hub_name(text));
    CHECK(find_model(text, transport) == text);
  }
  REFUSED("is not the name of a model on a hub", pull_model({}, transport, s));
  REFUSED("is not the name of a model on a hub", pull_model({"../../x"}, transport, s));
  REFUSED("is not the name of a model on a hub", pull_model({"a/b", "../x"}, transport, s));
  REFUSED("is not the name of a model on a hub", pull_model({"a/b", "main", "c/../d"}, transport, s));
  REFUSED("there is no model \"a/b\"", pull_model({"a/b"}, transport, s));
  CHECK_FALSE(cached_model({"a/b"}, s));
  CHECK_FALSE(cached_model({"a/b", "no", "such"}, s));
  s.endpoint = "no hub";
  REFUSED("HF_ENDPOINT = 'no hub' is not the address of a hub", pull_model({"a/b"}, transport, s));
  ::setenv("HF_HUB_DOWNLOAD_TIMEOUT", "-1", 1);
  REFUSED("HF_HUB_DOWNLOAD_TIMEOUT = '-1'", HubSettings::from_environment());
  ::unsetenv("HF_HUB_DOWNLOAD_TIMEOUT");
}
