# SPDX-License-Identifier: Apache-2.0
"""Which names a kernel may have.

The name becomes a namespace at global scope, part of a C symbol and a file stem, so it may be no word of C or C++ and
no name that the CUDA and C headers declare at global scope: a kernel called `exp` would not compile next to <math.h>.
"""

from __future__ import annotations

import re

from tmagen.template_words import is_emitted

MAX_CHARACTERS = 64

_IDENTIFIER = re.compile(r"[A-Za-z][A-Za-z0-9_]*", re.ASCII)

_KEYWORDS = frozenset(
    """
    alignas alignof and and_eq asm auto bitand bitor bool break case catch char char8_t char16_t char32_t class
    co_await co_return co_yield compl concept const const_cast consteval constexpr constinit continue
    contract_assert decltype default delete do double dynamic_cast else enum explicit export extern false float for
    friend goto if import inline int long module mutable namespace new noexcept not not_eq nullptr operator or or_eq
    private protected public register reinterpret_cast requires restrict return short signed sizeof static
    static_assert static_cast struct switch template this thread_local throw true try typedef typeid typename typeof
    typeof_unqual union unsigned using virtual void volatile wchar_t while xor xor_eq
    """.split()
)
"""Keywords of C and C++ up to C23 and C++26, alternative tokens included."""

_TAKEN = frozenset("main std posix cuda nv linux unix i386".split())
"""The entry point, namespaces that belong to others, and lower-case macros that GNU compilers predefine."""

_VECTOR = r"(u?(char|short|int|long|longlong)|float|double|half|bfloat16)[1-4](_16a|_32a)?"

_CUDA = re.compile(
    rf"threadIdx|blockIdx|blockDim|gridDim|warpSize|dim3|half|nv_half2?|nv_bfloat162?|cooperative_groups|{_VECTOR}"
    rf"|make_({_VECTOR}|cuda\w+)|(cuda|cu)[A-Z]\w*|CU[A-Za-z]\w*|CU_\w*|(atomic|tex|surf)[A-Z0-9]\w*|cl_\w+_flags(_enum)?"
    r"|libraryPropertyType|clock64|globaltimer|nanosleep|rsqrtf?|max|min|umax|umin|(u?ll)(max|min)"
)
"""Built-in variables, vector types and functions of CUDA C++, and the prefixes of its runtime and driver."""

_MATH = re.compile(
    r"(acos|acosh|asin|asinh|atan|atan2|atanh|canonicalize|cbrt|ceil|copysign|cos|cosh|cospi|cyl_bessel_i[01]|drem|erf|erfc"
    r"|erfcinv|erfcx|erfinv|exp|exp10|exp2|expm1|fabs|fdim|fdivide|finite|floor|fma|fmax|fmaximum|fmaximum_mag"
    r"|fmaximum_mag_num|fmaximum_num|fmaxmag|fmin|fminimum|fminimum_mag|fminimum_mag_num|fminimum_num|fminmag|fmod|frexp"
    r"|fromfp|fromfpx|gamma|getpayload|hypot|ilogb|isinf|isnan|j0|j1|jn|ldexp|lgamma|llogb|llrint|llround|log|log10|log1p"
    r"|log2|logb|lrint|lround|modf|nan|nearbyint|nextafter|nextdown|nexttoward|nextup|norm|norm3d|norm4d|normcdf|normcdfinv"
    r"|pow|powi|rcbrt|remainder|remquo|rhypot|rint|rnorm|rnorm3d|rnorm4d|round|roundeven|scalb|scalbln|scalbn|setpayload"
    r"|setpayloadsig|significand|sin|sincos|sincospi|sinh|sinpi|sqrt|tan|tanh|tgamma|totalorder|totalordermag|trunc|ufromfp"
    r"|ufromfpx|y0|y1|yn)(f|l|f16|f32|f64|f128|f32x|f64x)?(_r)?"
    r"|(str|wcs)(to|from)(f|d|l|ld)?(16|32|64|128)?x?(_l)?"
    r"|(d|f|f32|f32x|f64|f64x)(add|div|fma|mul|sqrt|sub)(l|f32|f32x|f64|f64x|f128)?"
)
"""<math.h> as the C library declares it, its suffixes and narrowing forms included, and what CUDA adds."""

_LIBC = frozenset(
    """
    a64l abort abs aligned_alloc alloca arc4random arc4random_buf arc4random_uniform asctime asprintf at_quick_exit
    atexit atof atoi atol atoll basename bcmp bcopy bsearch btowc bzero calloc canonicalize_file_name clearenv
    clearerr clock clock_adjtime clock_getcpuclockid clock_getres clock_gettime clock_nanosleep clock_settime clone
    close ctermid ctime cuserid daylight difftime div dprintf drand48 drand48_data duplocale dysize ecvt erand48
    errno exit explicit_bzero fclose fcloseall fcvt fd_mask fd_set fdopen feof ferror fflush ffs ffsl ffsll fgetc
    fgetpos fgets fgetwc fgetws fileno flockfile fmemopen fopen fopencookie fork fprintf fputc fputs fputwc fputws
    fread free freelocale freopen fscanf fseek fseeko fsetpos ftell ftello ftrylockfile funlockfile fwide fwprintf
    fwrite fwscanf gcvt getc getchar getcpu getdate getdate_err getdelim getenv getline getloadavg getpt getsubopt
    getw getwc getwchar gmtime grantpt index initstate isalnum isalpha isascii isblank iscanonical iscntrl isctype
    isdigit iseqsig isgraph islower isprint ispunct issignaling isspace isupper iswalnum iswalpha iswblank iswcntrl
    iswctype iswdigit iswgraph iswlower iswprint iswpunct iswspace iswupper iswxdigit isxdigit iszero itimerspec
    jrand48 kill l64a labs lcong48 lconv ldiv link llabs lldiv localeconv localtime lrand48 malloc math_errhandling
    mblen mbrlen mbrtowc mbsinit mbsnrtowcs mbsrtowcs mbstowcs mbtowc memccpy memchr memcmp memcpy memfrob memmem
    memmove mempcpy memrchr memset mkdtemp mkostemp mkostemps mkstemp mkstemps mktemp mktime mrand48 newlocale
    nrand48 obstack obstack_printf obstack_vprintf on_exit open open_memstream open_wmemstream pause pclose perror
    pipe popen posix_memalign posix_openpt printf program_invocation_name program_invocation_short_name pselect
    ptsname putc putchar putenv puts putw putwc putwchar qecvt qfcvt qgcvt qsort quick_exit raise rand random
    random_data rawmemchr read realloc reallocarray realpath remove rename renameat renameat2 rewind rindex rpmatch
    scanf secure_getenv seed48 select setbuf setbuffer setenv setlinebuf setlocale setns setstate setvbuf
    sigabbrev_np sigdescr_np sigevent signal signgam sleep snprintf sprintf srand srand48 srandom sscanf stat stderr
    stdin stdout stpcpy stpncpy strcasecmp strcasestr strcat strchr strchrnul strcmp strcoll strcpy strcspn strdup
    strerror strerrordesc_np strerrorname_np strfromd strfry strftime strlen strncasecmp strncat strncmp strncpy
    strndup strnlen strpbrk strptime strrchr strsep strsignal strspn strstr strtod strtof strtok strtol strtold
    strtoll strtoq strtoul strtoull strtouq strverscmp strxfrm swprintf swscanf sync system tempnam time timegm
    timelocal timer_create timer_delete timer_getoverrun timer_gettime timer_settime timespec timespec_get
    timespec_getres timeval timex timezone tm tmpfile tmpnam toascii tolower toupper towctrans towlower towupper
    tzname tzset u_char u_int u_long u_short uint ulong ungetc ungetwc unlink unlockpt unsetenv unshare uselocale
    ushort va_list valloc vasprintf vdprintf vfprintf vfscanf vfwprintf vfwscanf vprintf vscanf vsnprintf vsprintf
    vsscanf vswprintf vswscanf vwprintf vwscanf wait wcpcpy wcpncpy wcrtomb wcscasecmp wcscat wcschr wcschrnul
    wcscmp wcscoll wcscpy wcscspn wcsdup wcsftime wcslen wcsncasecmp wcsncat wcsncmp wcsncpy wcsnlen wcsnrtombs
    wcspbrk wcsrchr wcsrtombs wcsspn wcsstr wcstod wcstof wcstok wcstol wcstold wcstoll wcstombs wcstoq wcstoul
    wcstoull wcstouq wcswcs wcswidth wcsxfrm wctob wctomb wctrans wctype wcwidth wmemchr wmemcmp wmemcpy wmemmove
    wmempcpy wmemset wprintf write wscanf
    assert fpclassify htonl htons isfinite isgreater isgreaterequal isless islessequal islessgreater isnormal
    isunordered ntohl ntohs setjmp sigsetjmp signbit unreachable va_arg va_copy va_end va_start
    """.split()
)
"""What the C library declares at global scope, without its variants, and what it defines as macros."""

_LIBC_VARIANT = re.compile(r"(_r|_l|_unlocked|64|64_r|f(32|64|128)x?(_l)?|f_l)$")

_LIBC_FAMILY = re.compile(
    r"(pthread|sched)_\w+|NULL|EOF|NAN|INFINITY|BUFSIZ|OVERFLOW"
    r"|(M_|FP_|EXIT_|RAND_|HUGE_VAL|U?INT|MATH_|SEEK_|CLOCK_|L_|P_|NV_)\w*"
)


def refusal(name: str) -> str | None:
    """Why ``name`` may not name a kernel, as the end of a sentence that starts with the name; None if it may."""
    if not name:
        return "is empty"
    if len(name) > MAX_CHARACTERS:
        return f"has {len(name):,} characters; at most {MAX_CHARACTERS} are allowed"
    if not _IDENTIFIER.fullmatch(name):
        return "is not an identifier: a letter, then letters, digits and underscores"
    if "__" in name:
        return "has a double underscore, which C++ reserves"
    if name in _KEYWORDS:
        return "is a keyword of C or C++"
    if name in _TAKEN:
        return "is taken: it means something else at global scope"
    if _CUDA.fullmatch(name):
        return "belongs to CUDA"
    if name.endswith("_t"):
        return "ends in _t, as the types of the C library do"
    if name in _LIBC or _LIBC_VARIANT.sub("", name) in _LIBC or _MATH.fullmatch(name) or _LIBC_FAMILY.fullmatch(name):
        return "belongs to the C library"
    if is_emitted(name):
        return "is a name that the emitted file uses for something else"
    return None
