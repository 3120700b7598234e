package histories

import (
	"fmt"
	"strings"
)

// dashes are between the input of a command and its output.
const dashes = "----"

// Parse reads the commands of a history. Errors begin with the number of a line.
func Parse(source string) ([]*Command, error) {
	p := &parser{lines: strings.Split(strings.TrimRight(source, "\n"), "\n")}
	var commands []*Command
	for p.skipEmpty() {
		c, err := p.command()
		if err != nil {
			return nil, err
		}
		commands = append(commands, c)
	}
	return commands, nil
}

type parser struct {
	lines []string
	next  int
}

// skipEmpty moves to the next line that is not empty. It reports false at the end.
func (p *parser) skipEmpty() bool {
	for p.next < len(p.lines) && strings.TrimSpace(p.lines[p.next]) == "" {
		p.next++
	}
	return p.next < len(p.lines)
}

// until returns the lines up to one that ends them, and moves past that. It reports
// false if there is none.
func (p *parser) until(end string) (string, bool) {
	for i := p.next; i < len(p.lines); i++ {
		if p.lines[i] == end {
			text := strings.Join(p.lines[p.next:i], "\n")
			p.next = i + 1
			return text, true
		}
	}
	return strings.Join(p.lines[p.next:], "\n"), false
}

func (p *parser) command() (*Command, error) {
	c := &Command{}
	for p.next < len(p.lines) && strings.HasPrefix(p.lines[p.next], "#") {
		c.comment += p.lines[p.next] + "\n"
		p.next++
	}
	if p.next == len(p.lines) {
		return nil, fmt.Errorf("%d: a comment without a command", p.next)
	}
	c.at, c.line = p.next+1, p.lines[p.next]
	p.next++
	c.parseLine()
	var ok bool
	if c.Input, ok = p.until(dashes); !ok {
		return nil, fmt.Errorf("%d: %s: no %s follows", c.at, c.line, dashes)
	}
	if p.next < len(p.lines) && p.lines[p.next] == dashes {
		p.next++
		if c.want, ok = p.until(dashes); !ok {
			return nil, fmt.Errorf("%d: %s: the output has no end", c.at, c.line)
		}
		return c, nil
	}
	c.want, ok = p.until("")
	if !ok {
		p.next = len(p.lines)
	}
	return c, nil
}

// parseLine takes the line of a command apart.
func (c *Command) parseLine() {
	words := strings.Fields(c.line)
	c.Name, c.Named = words[0], map[string]string{}
	for _, word := range words[1:] {
		if name, value, found := strings.Cut(word, "="); found {
			c.Named[name] = value
		} else {
			c.Args = append(c.Args, word)
		}
	}
}

// print writes the command with an output.
func (c *Command) print(b *strings.Builder, output string) {
	b.WriteString(c.comment + c.line + "\n")
	if c.Input != "" {
		b.WriteString(c.Input + "\n")
	}
	b.WriteString(dashes + "\n")
	if strings.Contains("\n"+output+"\n", "\n\n") && output != "" || strings.HasPrefix(output, dashes) {
		b.WriteString(dashes + "\n" + output + "\n" + dashes + "\n")
		return
	}
	if output != "" {
		b.WriteString(output + "\n")
	}
}
