// Package cli is what the commands share at the place where they meet a person or a
// script.
//
// Settle gives every flag that was not given the value of its environment variable,
// and notes the origin of each value. List and Count are values of flags. A Terminal
// shows text of others without letting it act on the terminal; a Line is drawn over.
// Version says which version a program is.
//
// What a command does is not here, nor are the flags of one command.
package cli
