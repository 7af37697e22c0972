/* SPDX-License-Identifier: MIT
 * Copyright the cumem authors */

/* dl_iterate_phdr() shows each library's dynamic section; its relocations of
 * the two kinds that fill a slot (jump slot, global data) name the symbol.
 * Facts from the ELF specification and the psABI of x86-64 and AArch64. */

#define _GNU_SOURCE
#include "slot.h"

#include <string.h>

#if defined(__linux__) && (defined(__x86_64__) || defined(__aarch64__))

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#if defined(__x86_64__)
enum { JUMP_SLOT = R_X86_64_JUMP_SLOT, GLOBAL_DATA = R_X86_64_GLOB_DAT };
#else
enum { JUMP_SLOT = R_AARCH64_JUMP_SLOT, GLOBAL_DATA = R_AARCH64_GLOB_DAT };
#endif

struct tables {
    const ElfW(Sym) * symbols;
    const char *texts;
    const ElfW(Rela) * relocations[2];
    size_t counts[2];
};

struct search {
    const char *file_name, *symbol;
    struct cm_slots *slots; /* NULL: only the path is wanted */
    char *path;
    bool found;
};

static bool
is_library(const char *path, const char *file_name)
{
    const char *slash = strrchr(path, '/');
    return *file_name != '\0'
           && strcmp(slash != NULL ? slash + 1 : path, file_name) == 0;
}

/* glibc has made these addresses absolute, other loaders have not. */
static const void *
absolute(const struct dl_phdr_info *info, uintptr_t value)
{
    return (const void *)(value < info->dlpi_addr ? value + info->dlpi_addr
                                                  : value);
}

static void
read_entry(const struct dl_phdr_info *info, const ElfW(Dyn) * entry,
           struct tables *tables)
{
    const void *pointer = absolute(info, entry->d_un.d_ptr);
    switch (entry->d_tag) {
    case DT_SYMTAB: tables->symbols = pointer; break;
    case DT_STRTAB: tables->texts = pointer; break;
    case DT_JMPREL: tables->relocations[0] = pointer; break;
    case DT_PLTRELSZ:
        tables->counts[0] = entry->d_un.d_val / sizeof(ElfW(Rela));
        break;
    case DT_RELA: tables->relocations[1] = pointer; break;
    case DT_RELASZ:
        tables->counts[1] = entry->d_un.d_val / sizeof(ElfW(Rela));
        break;
    default: break;
    }
}

static bool
read_tables(const struct dl_phdr_info *info, struct tables *tables)
{
    memset(tables, 0, sizeof(*tables));
    for (int i = 0; i < info->dlpi_phnum; i++) {
        if (info->dlpi_phdr[i].p_type == PT_DYNAMIC) {
            const ElfW(Dyn) *entry =
                (const void *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
            for (; entry->d_tag != DT_NULL; entry++) {
                read_entry(info, entry, tables);
            }
        }
    }
    return tables->symbols != NULL && tables->texts != NULL;
}

/* Only whole pages of the region are protected. */
static bool
is_read_only(const struct dl_phdr_info *info, uintptr_t address)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        uintptr_t first = info->dlpi_addr + part->p_vaddr;
        if (part->p_type == PT_GNU_RELRO && address >= (first & ~(page - 1))
            && address < ((first + part->p_memsz) & ~(page - 1))) {
            return true;
        }
    }
    return false;
}

static void
add_slot(const struct dl_phdr_info *info, uintptr_t offset,
         struct cm_slots *slots)
{
    if (slots->count < CM_SLOT_MOST) {
        uintptr_t address = info->dlpi_addr + offset;
        slots->places[slots->count++] = (struct cm_slot_place){
            .slot = (void **)address,
            .read_only = is_read_only(info, address),
        };
    }
}

static void
search_slots(const struct dl_phdr_info *info, const char *symbol,
             struct cm_slots *slots)
{
    struct tables tables;
    if (!read_tables(info, &tables)) {
        return;
    }
    for (int which = 0; which < 2; which++) {
        const ElfW(Rela) *all = tables.relocations[which];
        for (size_t i = 0; all != NULL && i < tables.counts[which]; i++) {
            uint32_t kind = (uint32_t)ELF64_R_TYPE(all[i].r_info);
            const ElfW(Sym) *to = &tables.symbols[ELF64_R_SYM(all[i].r_info)];
            if ((kind == JUMP_SLOT || kind == GLOBAL_DATA)
                && strcmp(tables.texts + to->st_name, symbol) == 0) {
                add_slot(info, all[i].r_offset, slots);
            }
        }
    }
}

static int
look_at(struct dl_phdr_info *info, size_t size, void *context)
{
    struct search *search = context;
    (void)size;
    if (!is_library(info->dlpi_name, search->file_name)) {
        return 0;
    }
    search->found = true;
    if (search->slots != NULL) {
        search_slots(info, search->symbol, search->slots);
    }
    if (search->path != NULL) {
        strncpy(search->path, info->dlpi_name, CM_SLOT_PATH - 1);
        search->path[CM_SLOT_PATH - 1] = '\0';
    }
    return 1;
}

static int
note_loads(struct dl_phdr_info *info, size_t size, void *context)
{
    unsigned long long *loads = context;
    bool has_it = size >= offsetof(struct dl_phdr_info, dlpi_adds)
                              + sizeof(info->dlpi_adds);
    *loads = has_it ? info->dlpi_adds : 1;
    return 1; /* each library tells the same */
}

unsigned long long
cm_slot_loads(void)
{
    unsigned long long loads = 1;
    dl_iterate_phdr(note_loads, &loads);
    return loads;
}

bool
cm_slot_library(const char *file_name, char path[CM_SLOT_PATH])
{
    struct search search = {.file_name = file_name, .path = path};
    dl_iterate_phdr(look_at, &search);
    return search.found;
}

void
cm_slot_find(const char *file_name, const char *symbol,
             struct cm_slots *result)
{
    struct search search = {
        .file_name = file_name, .symbol = symbol, .slots = result};
    result->count = 0;
    dl_iterate_phdr(look_at, &search);
}

void *
cm_slot_original(const char *path, const char *symbol)
{
    void *library = dlopen(path, RTLD_NOLOAD | RTLD_LAZY);
    void *found = NULL;
    if (library != NULL) {
        found = dlsym(library, symbol);
        dlclose(library);
    }
    return found;
}

struct code {
    const char *file_name;
    uintptr_t address;
    bool has_it;
};

static int
look_for_code(struct dl_phdr_info *info, size_t size, void *context)
{
    struct code *code = context;
    (void)size;
    if (!is_library(info->dlpi_name, code->file_name)) {
        return 0;
    }
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        uintptr_t offset = code->address - info->dlpi_addr - part->p_vaddr;
        code->has_it |= part->p_type == PT_LOAD && (part->p_flags & PF_X) != 0
                        && offset < part->p_memsz;
    }
    return 1;
}

bool
cm_slot_is_free(const struct cm_slots *self, const char *file_name,
                const void *original, const void *ours)
{
    for (size_t i = 0; i < self->count; i++) {
        void *called = __atomic_load_n(self->places[i].slot, __ATOMIC_ACQUIRE);
        struct code code = {.file_name = file_name,
                            .address = (uintptr_t)called};
        if (called == original || called == ours) {
            continue;
        }
        dl_iterate_phdr(look_for_code, &code);
        if (!code.has_it) {
            return false;
        }
    }
    return true;
}

static bool
protect(void **slot, int protection)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    void *start = (void *)((uintptr_t)slot & ~(page - 1));
    return mprotect(start, page, protection) == 0;
}

static bool
write_slot(const struct cm_slot_place *place, void *function)
{
    if (place->read_only && !protect(place->slot, PROT_READ | PROT_WRITE)) {
        return false;
    }
    __atomic_store_n(place->slot, function, __ATOMIC_RELEASE);
    if (place->read_only) {
        (void)protect(place->slot, PROT_READ);
    }
    return true;
}

bool
cm_slot_set(const struct cm_slots *self, void *function)
{
    void *before[CM_SLOT_MOST];
    for (size_t i = 0; i < self->count; i++) {
        before[i] = __atomic_load_n(self->places[i].slot, __ATOMIC_ACQUIRE);
        if (!write_slot(&self->places[i], function)) {
            while (i-- > 0) {
                (void)write_slot(&self->places[i], before[i]);
            }
            return false;
        }
    }
    return true;
}

void
cm_slot_put_back(const struct cm_slots *self, void *from, void *to)
{
    for (size_t i = 0; i < self->count; i++) {
        if (__atomic_load_n(self->places[i].slot, __ATOMIC_ACQUIRE) == from) {
            (void)write_slot(&self->places[i], to);
        }
    }
}

#else

unsigned long long
cm_slot_loads(void)
{
    return 1;
}

bool
cm_slot_library(const char *file_name, char path[CM_SLOT_PATH])
{
    (void)file_name;
    path[0] = '\0';
    return false;
}

void
cm_slot_find(const char *file_name, const char *symbol,
             struct cm_slots *result)
{
    (void)file_name;
    (void)symbol;
    result->count = 0;
}

void *
cm_slot_original(const char *path, const char *symbol)
{
    (void)path;
    (void)symbol;
    return NULL;
}

bool
cm_slot_is_free(const struct cm_slots *self, const char *file_name,
                const void *original, const void *ours)
{
    (void)file_name;
    (void)original;
    (void)ours;
    return self->count == 0;
}

bool
cm_slot_set(const struct cm_slots *self, void *function)
{
    (void)function;
    return self->count == 0;
}

void
cm_slot_put_back(const struct cm_slots *self, void *from, void *to)
{
    (void)self;
    (void)from;
    (void)to;
}

#endif
