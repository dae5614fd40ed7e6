/* Other names of a setting, of other libraries, as its row has them, and what their values mean:
 *     NAME,NAME(theirs=ours theirs=ours) */
#ifndef GSHMEM_BASE_OTHER_NAMES_H
#define GSHMEM_BASE_OTHER_NAMES_H

#include <stdbool.h>
#include <stddef.h>

/* A name; values NULL: they are those of the setting. */
struct other_name {
    char name[40];
    const char *values;
    int bytes; /* of the values */
};

/* One "theirs=ours" of a name's values. */
struct other_value {
    const char *theirs, *ours;
    int theirs_bytes, ours_bytes;
};

/* Takes the next of the names; false: there is none. */
bool other_names_next(const char **names, struct other_name *other);
/* Takes the next of the values, from *at on (0 at first); false: there is none. */
bool other_names_value(const struct other_name *other, int *at, struct other_value *v);

/* Our value for the text of a variable, written to `value`; "" is as if it were not set. False: it
 * has none, and `value` has those that are understood, for a message. */
bool other_names_translate(const struct other_name *other, const char *text, char *value,
                           size_t size);

#endif
