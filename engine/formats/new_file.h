// An output file that a user names: it is written next to its place and appears there once it is
// whole.
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>
#include <vector>

namespace tandem {

/// Where a path leads, through links, also to a file that is not there yet. Absolute.
std::string link_target(const std::string& path);

/// "PATH.LETTERS" with random letters, a name that no file has.
std::string unused_name(const std::string& path);
/// Whether unused_name may have made `name` from `path`.
bool is_unused_name(const std::string& name, const std::string& path);

class NewFile {
 public:
  /// A link stays one: the file is made where it leads. Throws Error{usage}, with `option` as the
  /// place of the mistake, for a file without write permission.
  NewFile(const std::string& path, std::string_view option);
  /// Owner and permissions will be those of `file`, which this one replaces. Throws as above.
  void come_after(const std::string& file);
  /// Removes what `make` has made.
  ~NewFile();
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;

  /// An empty file in the folder of the place, under a name that no file had.
  std::string make();
  /// Moves a complete file of `make` to the place at once, with owner and permissions of a file
  /// that was there.
  void finish(const std::string& made);

 private:
  [[noreturn]] void refuse(std::string message, std::string expected, const std::string& got) const;
  void take_permissions(const std::string& made) const;

  std::string option_, target_;
  bool replaces_ = false;
  mode_t mode_ = 0;  // mode and owner of the existing file
  uid_t owner_ = 0;
  gid_t group_ = 0;
  std::vector<std::string> made_;
};

/// `content` as a NewFile, on the disk once this returns.
void write_new_file(const std::string& path, std::string_view content, std::string_view option);

}  // namespace tandem
