"""C text: function heads and bodies wrapped at 100 columns, section rules, comments."""

WIDTH = 100


def comment(text):
    lines = text.split('\n')
    return '/* ' + '\n * '.join(lines) + ' */\n'


def section(title):
    return '/* ---- ' + title + ' ' + '-' * (WIDTH - len(title) - 13) + ' */\n\n'


def wrap_list(head, items, tail):
    """head(item, item, …)tail, continued under the first item."""
    lines, line = [], head
    for i, item in enumerate(items):
        item += ', ' if i < len(items) - 1 else tail
        if len(line + item.rstrip()) > WIDTH and line.strip():
            lines.append(line.rstrip())
            line = ' ' * len(head)
        line += item
    lines.append(line)
    return '\n'.join(lines) + '\n'


def wrap_call(line):
    """Breaks a statement that is too long after a comma, under its innermost open parenthesis (or
    template's angle)."""
    result, open_at = [], []
    while len(line) > WIDTH and ', ' in line[:WIDTH]:
        end = line.rindex(', ', 0, WIDTH) + 1
        for i, c in enumerate(line[:end]):
            if c == '(' or c == '<' and line[i - 1] != ' ':
                open_at.append(i)
            elif c == ')' or c == '>' and line[i - 1] not in ' -':
                open_at.pop()
        result.append(line[:end])
        line = ' ' * (open_at[-1] + 1) + line[end + 1:]
    return result + [line]


def function(returns, name, parameters, body, prefix='static inline '):
    """A whole function; parameters are declarations, body is lines without indentation."""
    space = '' if returns.endswith('*') else ' '
    head = prefix + returns + space + name + '('
    if len(head) + max(map(len, parameters)) > WIDTH:
        head = prefix + returns + '\n' + name + '('
        first, rest = head.split('\n')
        signature = first + '\n' + wrap_list(rest, parameters, ')')
    else:
        signature = wrap_list(head, parameters, ')')
    lines = [part for line in body for part in (wrap_call('    ' + line) if line else [''])]
    return signature + '{\n' + '\n'.join(lines) + '\n}\n'

