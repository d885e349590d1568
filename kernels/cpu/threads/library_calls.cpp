#include "kernels/cpu/threads/library_calls.h"

#include <elf.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <vector>

namespace tandem {
namespace {

#if defined(__x86_64__)

struct Change {
  std::uintptr_t* slot;  // entry of the library's table of addresses (GOT)
  void* function;
  bool is_read_only;  // once the library is loaded (RELRO)
};

struct Search {
  std::string_view library;
  std::span<const ReplacedCall> calls;
  std::initializer_list<std::string_view> prefixes;
  std::vector<Change> changes;
  bool lacks_one;  // a function of these prefixes is called that nothing replaces
};

// The dynamic section of a loaded library: where its symbols and relocations are.
class DynamicSection {
 public:
  explicit DynamicSection(const dl_phdr_info& info) : base_(info.dlpi_addr) {
    for (int i = 0; i < info.dlpi_phnum; ++i) {
      const std::uintptr_t begin = base_ + info.dlpi_phdr[i].p_vaddr;
      if (info.dlpi_phdr[i].p_type == PT_GNU_RELRO) {
        read_only_begin_ = begin;
        read_only_end_ = begin + info.dlpi_phdr[i].p_memsz;
      }
      if (info.dlpi_phdr[i].p_type != PT_DYNAMIC) continue;
      const auto* entry = reinterpret_cast<const ElfW(Dyn)*>(begin);
      for (; entry->d_tag != DT_NULL; ++entry) read(*entry);
    }
  }

  void find(Search& search) const {
    if (symbols_ == nullptr || names_ == nullptr) return;
    find_in(jump_slots_, jump_bytes_, search);
    find_in(addresses_, address_bytes_, search);
  }

 private:
  void read(const ElfW(Dyn) & entry) {
    const auto at = [&] { return entry.d_un.d_ptr; };  // glibc has added the base already
    switch (entry.d_tag) {
      case DT_SYMTAB:
        symbols_ = reinterpret_cast<const ElfW(Sym)*>(at());
        break;
      case DT_STRTAB:
        names_ = reinterpret_cast<const char*>(at());
        break;
      case DT_JMPREL:
        jump_slots_ = reinterpret_cast<const ElfW(Rela)*>(at());
        break;
      case DT_PLTRELSZ:
        jump_bytes_ = entry.d_un.d_val;
        break;
      case DT_RELA:
        addresses_ = reinterpret_cast<const ElfW(Rela)*>(at());
        break;
      case DT_RELASZ:
        address_bytes_ = entry.d_un.d_val;
        break;
      default:
        break;
    }
  }

  void find_in(const ElfW(Rela) * relocations, std::size_t bytes, Search& search) const {
    if (relocations == nullptr) return;
    for (std::size_t i = 0; i < bytes / sizeof(ElfW(Rela)); ++i) {
      const ElfW(Rela)& relocation = relocations[i];
      const auto type = ELF64_R_TYPE(relocation.r_info);
      const auto symbol = ELF64_R_SYM(relocation.r_info);
      if (symbol == 0) continue;
      const std::string_view name = names_ + symbols_[symbol].st_name;
      if (std::ranges::none_of(search.prefixes,
                               [&](auto prefix) { return name.starts_with(prefix); })) {
        continue;
      }
      const auto call = std::ranges::find(search.calls, name, &ReplacedCall::name);
      if (call == search.calls.end() || (type != R_X86_64_JUMP_SLOT && type != R_X86_64_GLOB_DAT)) {
        search.lacks_one = true;
        continue;
      }
      const std::uintptr_t slot = base_ + relocation.r_offset;
      search.changes.push_back({reinterpret_cast<std::uintptr_t*>(slot), call->function,
                                slot >= read_only_begin_ && slot < read_only_end_});
    }
  }

  std::uintptr_t base_;
  std::uintptr_t read_only_begin_ = 0, read_only_end_ = 0;
  const ElfW(Sym) * symbols_ = nullptr;
  const char* names_ = nullptr;
  const ElfW(Rela) * jump_slots_ = nullptr;
  std::size_t jump_bytes_ = 0;
  const ElfW(Rela) * addresses_ = nullptr;
  std::size_t address_bytes_ = 0;
};

int look_into(dl_phdr_info* info, std::size_t, void* data) {
  auto& search = *static_cast<Search*>(data);
  const std::string_view path = info->dlpi_name;
  const std::string_view file = path.substr(path.rfind('/') + 1);
  if (!file.starts_with(search.library)) return 0;
  DynamicSection(*info).find(search);
  return 1;
}

bool set_writable(std::uintptr_t* slot, bool is_writable) {
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  auto* start = reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(slot) & ~(page - 1));
  return ::mprotect(start, page, is_writable ? PROT_READ | PROT_WRITE : PROT_READ) == 0;
}

bool make(const std::vector<Change>& changes) {
  for (const Change& change : changes) {
    if (!set_writable(change.slot, true)) return false;
  }
  for (const Change& change : changes) {
    __atomic_store_n(change.slot, reinterpret_cast<std::uintptr_t>(change.function),
                     __ATOMIC_RELEASE);
  }
  for (const Change& change : changes) {
    if (change.is_read_only) set_writable(change.slot, false);
  }
  return true;
}

#endif

}  // namespace

bool replace_library_calls([[maybe_unused]] std::string_view library,
                           [[maybe_unused]] std::span<const ReplacedCall> calls,
                           [[maybe_unused]] std::initializer_list<std::string_view> prefixes) {
#if defined(__x86_64__)
  Search search{library, calls, prefixes, {}, false};
  ::dl_iterate_phdr(look_into, &search);
  return !search.lacks_one && !search.changes.empty() && make(search.changes);
#else
  return false;
#endif
}

}  // namespace tandem
