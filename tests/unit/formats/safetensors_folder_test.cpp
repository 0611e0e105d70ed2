// Sharded weights: valid index files, and the errors of invalid ones.
#include "rlx/formats/safetensors_folder.h"

#include <doctest/doctest.h>

#include "tests/support/error_text.h"
#include "tests/support/temp_dir.h"

namespace rlx {
namespace {

using test::contains;

// Two files: one with tensors a and b, one with c.
class ShardedFolder {
 public:
  ShardedFolder() {
    write("one.safetensors", {"a", "b"});
    write("two.safetensors", {"c"});
  }
  void write(const std::string& file, const std::vector<std::string>& names) const {
    std::vector<NamedTensor> tensors;
    for (const std::string& name : names)
      tensors.push_back({name, Tensor::full(Shape({3}, DType::F32), static_cast<double>(name[0]))});
    write_safetensors(dir_.file(file), tensors);
  }
  void index(const std::string& map) const {
    dir_.write("model.safetensors.index.json", R"({"metadata": {"total_size": 36}, "weight_map": )" + map + "}");
  }
  std::shared_ptr<SafetensorsFolder> open() const { return SafetensorsFolder::open(dir_.path()); }
  std::string refusal() const {
    return test::error_text([&] { (void)open(); });
  }
  const test::TempDir& dir() const { return dir_; }

 private:
  test::TempDir dir_;
};

}  // namespace

TEST_CASE("safetensors folder: shards are one loader, and nothing is copied") {
  const ShardedFolder folder;
  folder.index(R"({"c": "two.safetensors", "a": "one.safetensors", "b": "one.safetensors"})");
  const auto f = folder.open();
  CHECK(f->names() == std::vector<std::string>{"a", "b", "c"});
  for (const std::string name : {"a", "b", "c"}) {
    const auto view = f->find(name);
    REQUIRE(view);
    CHECK(*static_cast<const float*>(view->data) == static_cast<float>(name[0]));
    const auto owner = f->files()[name == "c" ? 1 : 0];
    CHECK(view->data == owner->find(name)->data);  // it points into the mapping
    CHECK(f->identity(name)->inode == owner->identity(name)->inode);
    f->drop_pages(name, 0, 4);
  }
  CHECK(!f->find("d"));
  CHECK(contains(f->source(), "model.safetensors.index.json"));
  folder.write("model.safetensors", {"x"});  // a single file takes precedence
  CHECK(folder.open()->names() == std::vector<std::string>{"x"});
}

TEST_CASE("safetensors folder: faults of an index are named") {
  const ShardedFolder folder;
  folder.index(R"({"a": "one.safetensors", "b": "one.safetensors"})");
  CHECK(folder.refusal().empty());  // files that the index does not name are ignored
  folder.index(R"({"a": "one.safetensors"})");
  CHECK(contains(folder.refusal(), "\"weight_map\" does not list the tensor \"b\" of "));
  folder.index(R"({"a": "one.safetensors", "b": "one.safetensors", "c": "one.safetensors"})");
  CHECK(contains(folder.refusal(),
                 "the index lists the tensor \"c\" in \"one.safetensors\", but that file does not have it"));
  folder.index(R"({"a": "one.safetensors", "b": "one.safetensors", "c": "three.safetensors"})");
  CHECK(contains(folder.refusal(), "names the file \"three.safetensors\", which does not exist"));
  for (const char* file : {"../one.safetensors", "/etc/passwd", "", "..", "a\\\\b"}) {
    folder.index(std::string(R"({"a": ")") + file + "\"}");
    CHECK(contains(folder.refusal(), "an index must name files of its own folder"));
  }
  folder.index(R"({"a": 3})");
  CHECK(contains(folder.refusal(), "\"a\" must be a string"));
  folder.index(R"({"a": "one.safetensors", "a": "one.safetensors"})");
  CHECK(contains(folder.refusal(), "\"a\" is listed twice"));
  folder.index("{}");
  CHECK(contains(folder.refusal(), "\"weight_map\" lists no tensors"));
  folder.dir().write("model.safetensors.index.json", "{}");
  CHECK(contains(folder.refusal(), "missing key \"weight_map\""));
  folder.write("two.safetensors", {"a", "c"});
  folder.index(R"({"a": "one.safetensors", "b": "one.safetensors", "c": "two.safetensors"})");
  CHECK(contains(folder.refusal(), "the tensor \"a\" is in two files, "));
  folder.dir().write("two.safetensors", "damaged");
  CHECK(contains(folder.refusal(), "two.safetensors: "));
}

}  // namespace rlx
