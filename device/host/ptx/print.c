/* printf, malloc, free and assert of kernels made from PTX: results and arguments are arrays of
 * bytes. */
#define _GNU_SOURCE
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gshmem/host_device/ptx/module.h"

enum { PRINT_ROOM = 1024 };

/* What printf has put together so far. */
struct print {
    const u8 *arguments;
    size_t at; /* of the next argument */
    char text[PRINT_ROOM];
    size_t used;
    u32 printed; /* arguments */
};

/* The next argument: each lies on a multiple of its size. */
static u64 print_take(struct print *p, size_t bytes)
{
    u64 value = 0;

    p->at = (p->at + bytes - 1) / bytes * bytes;
    memcpy(&value, p->arguments + p->at, bytes);
    p->at += bytes;
    return value;
}

static void print_flush(struct print *p)
{
    fwrite(p->text, 1, p->used, stdout);
    p->used = 0;
}

static void print_add(struct print *p, const char *text, size_t bytes)
{
    if (bytes > PRINT_ROOM - p->used)
        print_flush(p);
    if (bytes > PRINT_ROOM) {
        fwrite(text, 1, bytes, stdout);
        return;
    }
    memcpy(p->text + p->used, text, bytes);
    p->used += bytes;
}

/* One conversion, which `specification` is, without its length and its letter. */
static void print_convert(struct print *p, const char *specification, bool wide, char letter)
{
    char format[48], text[400];
    int length = 0;

    snprintf(format, sizeof format, "%s%s%c", specification, strchr("diouxX", letter) ? "ll" : "",
             letter);
    switch (letter) {
    case 'd':
    case 'i':
        length = wide ? snprintf(text, sizeof text, format, (long long)print_take(p, 8))
                      : snprintf(text, sizeof text, format, (long long)(s32)print_take(p, 4));
        break;
    case 'o':
    case 'u':
    case 'x':
    case 'X':
        length =
            snprintf(text, sizeof text, format, (unsigned long long)print_take(p, wide ? 8 : 4));
        break;
    case 'c':
        length = snprintf(text, sizeof text, format, (int)print_take(p, 4));
        break;
    case 'p':
        length = snprintf(text, sizeof text, format, (void *)(uintptr_t)print_take(p, 8));
        break;
    case 's': {
        const char *string = (const char *)(uintptr_t)print_take(p, 8);

        if (strcmp(specification, "%") == 0) {
            print_add(p, string ? string : "(null)", string ? strlen(string) : 6);
            break;
        }
        length = snprintf(text, sizeof text, format, string ? string : "(null)");
        break;
    }
    default:
        length = snprintf(text, sizeof text, format, ptx_f64(print_take(p, 8)));
    }
    if (length > 0)
        print_add(p, text, (size_t)length < sizeof text ? (size_t)length : sizeof text - 1);
    p->printed++;
}

/* From a % to behind its letter; what is no conversion is printed as it is. */
static const char *print_one(struct print *p, const char *at)
{
    char specification[32] = "%";
    size_t used = 1;
    bool wide = false;
    const char *from = at++;

    for (; *at && strchr("-+ #0123456789.*", *at) && used < sizeof specification - 12; at++) {
        if (*at == '*')
            used += (size_t)snprintf(specification + used, sizeof specification - used, "%d",
                                     (int)print_take(p, 4));
        else
            specification[used++] = *at;
    }
    specification[used] = '\0';
    for (; *at && strchr("hlLjzt", *at); at++)
        wide |= *at != 'h';
    if (*at == '%')
        print_add(p, "%", 1);
    else if (*at && strchr("diouxXcpseEfFgGaA", *at))
        print_convert(p, specification, wide, *at);
    else
        print_add(p, from, (size_t)(at - from));
    return *at ? at + 1 : at;
}

void gshmem_host_ptx_printf(u8 *result, u8 *format_bytes, u8 *arguments_bytes)
{
    struct print p = {.at = 0};
    const char *format;

    memcpy(&format, format_bytes, sizeof format);
    memcpy(&p.arguments, arguments_bytes, sizeof p.arguments);
    flockfile(stdout);
    while (*format) {
        size_t plain = strcspn(format, "%");

        print_add(&p, format, plain);
        format += plain;
        if (*format)
            format = print_one(&p, format);
    }
    print_flush(&p);
    funlockfile(stdout);
    memcpy(result, &p.printed, sizeof p.printed);
}

void gshmem_host_ptx_malloc(u8 *result, u8 *bytes)
{
    size_t size;

    memcpy(&size, bytes, sizeof size);
    void *at = malloc(size);
    memcpy(result, &at, sizeof at);
}

void gshmem_host_ptx_free(u8 *pointer)
{
    void *at;

    memcpy(&at, pointer, sizeof at);
    free(at);
}

void gshmem_host_ptx_assert(u8 *message, u8 *file, u8 *line, u8 *function, u8 *char_size)
{
    const char *text, *file_name, *function_name;
    unsigned number;

    (void)char_size;
    memcpy(&text, message, sizeof text);
    memcpy(&file_name, file, sizeof file_name);
    memcpy(&number, line, sizeof number);
    memcpy(&function_name, function, sizeof function_name);
    gshmem_host_assert_fail(text, file_name, number, function_name);
}
